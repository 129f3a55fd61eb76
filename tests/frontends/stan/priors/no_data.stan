// draws
parameters { real x; vector<lower=0>[2] s; }
model {
  x ~ normal(0, 1); // prior
  s ~ normal(x, 1); // prior
}
