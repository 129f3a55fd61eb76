// improper: theta
functions {
  real fits_lpdf(vector theta, vector y, vector x) { return normal_lpdf(y | theta[1] + theta[2] * x, 1); }
}
data { int N; vector[N] x; vector[N] y; }
parameters { vector[2] theta; }
model {
  theta ~ fits(y, x);
}
