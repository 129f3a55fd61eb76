data { int R; int C; matrix[R, C] Y; }
parameters { matrix[R, C] A; array[2] row_vector[C] b; }
model { to_vector(Y - A) ~ normal(0, 1); to_vector(A) ~ normal(0, 2); b[1] ~ normal(b[2], 1); b[2] ~ normal(0, 1); }
alternative model { to_vector(A) ~ normal(0, 2); b[1] ~ normal(0, 1); b[2] ~ normal(0, 1); }
