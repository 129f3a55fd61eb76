// draws
data { int N; int D; matrix[N, D] X; vector[N] y; real scale; real df; }
parameters { real<lower=0> sigma; vector[D] z; real<lower=0> tau; vector<lower=0>[D] lambda; real<lower=0> slab; }
transformed parameters {
  vector[D] beta = z .* sqrt(slab * square(lambda) ./ (slab + tau ^ 2 * square(lambda))) * tau;
}
model {
  z ~ normal(0, 1); // prior
  lambda ~ student_t(df, 0, 1); // prior
  tau ~ student_t(1, 0, scale * sigma); // prior
  slab ~ inv_gamma(0.5 * df, 0.5 * df); // prior
  sigma ~ normal(0, 2); // prior
  y ~ normal_id_glm(X, 0, beta, sigma);
}
