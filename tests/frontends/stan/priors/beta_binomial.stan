// draws
data { int n; int y; }
parameters { real<lower=0, upper=1> theta; }
model {
  theta ~ beta(2, 5); // prior
  y ~ binomial(n, theta);
}
