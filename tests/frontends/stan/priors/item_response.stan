// draws
data { int I; int J; int N; array[N] int ii; array[N] int jj; array[N] int<lower=0, upper=1> y; }
parameters { vector[J] theta; vector[I] b; vector<lower=0>[I] a; real mu; real<lower=0> s; }
model {
  theta ~ std_normal(); // prior
  a ~ lognormal(0.5, 1); // prior
  b ~ normal(mu, s); // prior
  mu ~ normal(0, 5); // prior
  s ~ cauchy(0, 2); // prior
  y ~ bernoulli_logit(a[ii] .* (theta[jj] - b[ii]));
}
