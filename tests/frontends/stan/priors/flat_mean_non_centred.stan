// improper: mu
// uniform: rho
// kept: tau, z, rho
data { int J; vector[J] y; vector[J] se; }
parameters { real mu; real<lower=0> tau; vector[J] z; real<lower=-1, upper=1> rho; }
transformed parameters { vector[J] theta = mu + tau * z; }
model {
  tau ~ cauchy(0, 5); // prior
  z ~ std_normal(); // prior
  y ~ normal(rho * theta, se);
}
