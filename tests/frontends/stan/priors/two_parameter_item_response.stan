// draws
data { int I; int J; int N; array[N] int ii; array[N] int jj; array[N] int<lower=0, upper=1> y; }
parameters { vector<lower=0>[I] a; vector[I] b; vector[J] theta; real mu_b; real<lower=0> s_b; }
model {
  a ~ lognormal(0, 0.5); // prior
  theta ~ std_normal(); // prior
  mu_b ~ normal(0, 2); // prior
  s_b ~ cauchy(0, 2); // prior
  b ~ normal(mu_b, s_b); // prior
  y ~ bernoulli_logit(a[ii] .* (theta[jj] - b[ii]));
}
