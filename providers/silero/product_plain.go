//go:build !goexperiment.simd || !amd64 || go1.27

package silero

// product is dst += m·x.
func (m *matrix) product(dst []float32, x *sparse) { m.plainProduct(dst, x) }
