package silero

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestProduct holds the product to its definition, and to the plain one, for
// every shape of the network and vectors with few, some and all entries.
func TestProduct(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, shape := range []struct{ rows, cols int }{{128, bins}, {64, 128}, {64, 64}, {128, 64}, {512, 128}, {24, 8}} {
		rowwise := make([]float32, shape.rows*shape.cols)
		for i := range rowwise {
			rowwise[i] = float32(random.NormFloat64())
		}
		m := newMatrix(rowwise, shape.rows)
		for _, density := range []float64{0, 0.02, 0.5, 1} {
			x := make([]float32, shape.cols)
			for i := range x {
				if random.Float64() < density {
					x[i] = float32(random.NormFloat64())
				}
			}
			var s sparse
			s.gather(&m, x, true)
			got, plain := make([]float32, shape.rows), make([]float32, shape.rows)
			for i := range got {
				got[i], plain[i] = float32(i), float32(i)
			}
			m.product(got, &s)
			m.plainProduct(plain, &s)
			for row := range got {
				want := float64(row)
				for col, v := range x {
					want += float64(rowwise[row*shape.cols+col]) * float64(v)
				}
				if math.Abs(float64(got[row])-want) > 1e-3 || math.Abs(float64(plain[row])-want) > 1e-3 {
					t.Fatalf("%v, density %g, row %d: %g, plain %g, want %g", shape, density, row, got[row], plain[row], want)
				}
			}
		}
	}
}
