// draws
data { int n; int y; }
parameters { real<lower=0, upper=1> theta; array[2] real<lower=-1, upper=2> u; corr_matrix[2] R; }
model {
  y ~ binomial(n, theta * inv_logit(sum(u) + R[1, 2]));
}
// uniform: theta, u, R
