// draws
// uniform: mu
data { int J; array[J] int n; array[J] int y; real<lower=0> M; }
parameters { real<lower=0, upper=1> mu; real<lower=0, upper=M> kappa; vector<lower=0, upper=1>[J] theta; }
model {
  kappa ~ pareto(0.1, 1.5) T[, M]; // prior
  theta ~ beta_proportion(mu, kappa); // prior
  y ~ binomial(n, theta);
}
