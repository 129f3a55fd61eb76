// draws
data { int K; array[K] int y; vector<lower=0>[K] alpha; }
parameters { simplex[K] theta; }
model {
  theta ~ dirichlet(alpha); // prior
  y ~ multinomial(theta);
}
