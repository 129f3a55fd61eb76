functions {
  vector system(vector x, vector theta) { return [x[1] - theta[1], exp(x[2]) - theta[2]]'; }
  real area(real x, real xc, array[] real theta, data array[] real xr, data array[] int xi) {
    return exp(-square(x) * theta[1]);
  }
}
parameters { vector<lower=0.5, upper=2>[2] theta; }
transformed parameters {
  vector[2] x = solve_newton(system, [1, 1]', theta);
  real I = integrate_1d(area, 0, 3, {theta[1]}, {0.0}, {0}, 1e-8);
}
model { x ~ normal(1, 1); target += -square(I - 0.5); theta ~ lognormal(0, 1); }
alternative model { theta ~ uniform(0.5, 2); }
