// Training a small network, Dense(10, 10, sigmoid) -> Dense(10, 1), by Adam on the mean square error: as the operations
// of a framework, each a kernel, and all steps in one kernel. The parameters lie one behind the other: weights and biases
// of the first layer, weights and bias of the second.

typedef unsigned long long u64;

constexpr int SIDE = 10, WEIGHTS = SIDE * SIDE, PARAMETERS = WEIGHTS + SIDE + SIDE + 1;
constexpr int BIAS1 = WEIGHTS, WEIGHTS2 = BIAS1 + SIDE, BIAS2 = WEIGHTS2 + SIDE;
constexpr float RATE = 0.01f, DECAY1 = 0.9f, DECAY2 = 0.999f, TINY = 1e-8f;

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// A parameter takes a step. The powers are those of the decays up to this step.
__device__ void adam(float &parameter, float gradient, float &mean, float &square, double power1, double power2) {
    mean = DECAY1 * mean + (1 - DECAY1) * gradient;
    square = DECAY2 * square + (1 - DECAY2) * gradient * gradient;
    float step = RATE * mean / (float)(1 - power1);
    parameter -= step / (sqrtf(square / (float)(1 - power2)) + TINY);
}

#define EACH(index)                                                                                                   \
    u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x;                                                           \
    if (index < n)

extern "C" {
__global__ void train_begin(float *parameters, const float *initial, float *means, float *squares, double *powers,
                            u64 n) {
    EACH(at) {
        parameters[at] = initial[at];
        means[at] = squares[at] = 0;
        if (at < 2) powers[at] = 1;
    }
}

// Each element of the result is a sum over `inner` products, of which both arrays are walked through by steps.
__global__ void train_product(float *out, const float *a, const float *b, u64 n, u64 columns, u64 inner, u64 a_row,
                              u64 a_step, u64 b_step, u64 b_column) {
    EACH(at) {
        u64 row = at / columns, column = at % columns;
        float sum = 0;
        for (u64 k = 0; k < inner; k++) sum += a[row * a_row + k * a_step] * b[k * b_step + column * b_column];
        out[at] = sum;
    }
}

__global__ void train_add_bias(float *x, const float *bias, u64 n, u64 columns) { EACH(at) x[at] += bias[at % columns]; }
__global__ void train_sigmoid(float *x, u64 n) { EACH(at) x[at] = sigmoid(x[at]); }
__global__ void train_sigmoid_back(float *gradient, const float *y, u64 n) {
    EACH(at) gradient[at] *= y[at] * (1 - y[at]);
}
__global__ void train_subtract(float *out, const float *a, const float *b, u64 n) { EACH(at) out[at] = a[at] - b[at]; }
__global__ void train_scale(float *x, float by, u64 n) { EACH(at) x[at] *= by; }
__global__ void train_mean_square(float *out, const float *x, u64 n) {
    float sum = 0;
    for (u64 at = 0; at < n; at++) sum += x[at] * x[at];
    *out = sum / n;
}
__global__ void train_sum_rows(float *out, const float *a, u64 n, u64 rows) {
    EACH(at) {
        float sum = 0;
        for (u64 row = 0; row < rows; row++) sum += a[row * n + at];
        out[at] = sum;
    }
}
__global__ void train_tick(double *powers) {
    powers[0] *= DECAY1;
    powers[1] *= DECAY2;
}
__global__ void train_adam(float *parameters, const float *gradients, float *means, float *squares,
                           const double *powers, u64 n) {
    EACH(at) adam(parameters[at], gradients[at], means[at], squares[at], powers[0], powers[1]);
}

// One block of 128 threads, and what all of them need in shared memory. Thread t keeps what belongs to parameter t.
__global__ void train_fused(float *out, float *loss, const float *initial, const float *inputs, const float *targets,
                            u64 steps) {
    __shared__ float x[WEIGHTS], y[SIDE], parameters[PARAMETERS], hidden[WEIGHTS], back[WEIGHTS], off[SIDE];
    int t = threadIdx.x, sample = t / SIDE, unit = t % SIDE;
    bool has_parameter = t < PARAMETERS, has_unit = t < WEIGHTS;
    if (has_unit) x[t] = inputs[t];
    if (t < SIDE) y[t] = targets[t];
    if (has_parameter) parameters[t] = initial[t];
    float mean = 0, square = 0;
    double power1 = 1, power2 = 1;
    __syncthreads();
    for (u64 step = 0; step < steps; step++) {
        if (has_unit) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < SIDE; k++) sum += x[sample * SIDE + k] * parameters[unit * SIDE + k];
            hidden[t] = sigmoid(sum + parameters[BIAS1 + unit]);
        }
        __syncthreads();
        if (t < SIDE) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < SIDE; k++) sum += hidden[t * SIDE + k] * parameters[WEIGHTS2 + k];
            off[t] = sum + parameters[BIAS2] - y[t];
        }
        __syncthreads();
        if (has_unit)
            back[t] = off[sample] * (2.0f / SIDE) * parameters[WEIGHTS2 + unit] * (hidden[t] * (1 - hidden[t]));
        __syncthreads();
        float gradient = 0;
        if (t < BIAS1) {
            // Of the weight between input `unit` and the hidden unit that `sample` is here.
#pragma unroll
            for (int s = 0; s < SIDE; s++) gradient += back[s * SIDE + sample] * x[s * SIDE + unit];
        } else if (t < WEIGHTS2) {
#pragma unroll
            for (int s = 0; s < SIDE; s++) gradient += back[s * SIDE + t - BIAS1];
        } else if (t < BIAS2) {
#pragma unroll
            for (int s = 0; s < SIDE; s++) gradient += off[s] * (2.0f / SIDE) * hidden[s * SIDE + t - WEIGHTS2];
        } else if (t == BIAS2) {
#pragma unroll
            for (int s = 0; s < SIDE; s++) gradient += off[s] * (2.0f / SIDE);
        }
        power1 *= DECAY1;
        power2 *= DECAY2;
        if (has_parameter) adam(parameters[t], gradient, mean, square, power1, power2);
        __syncthreads();
    }
    if (has_parameter) out[t] = parameters[t];
    if (t == 0) {
        float sum = 0;
        for (int s = 0; s < SIDE; s++) sum += off[s] * off[s];
        *loss = sum / SIDE;
    }
}
}
