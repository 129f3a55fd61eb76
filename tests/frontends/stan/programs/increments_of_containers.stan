parameters { vector[3] v; array[2] real a; matrix[2,2] M; row_vector[2] r; }
model { target += -square(v); target += {-square(a[1]), -square(a[2])}; target += -square(M); target += -square(r); }
alternative model { v ~ std_normal(); a ~ std_normal(); to_vector(M) ~ normal(0, 2); r ~ logistic(0, 1); }
