package memory

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// scaleBytes begins a packed vector: what its numbers are to be multiplied with, a float32 in little-endian order.
const scaleBytes = 4

// pack makes the bytes in which a vector is kept: a number of 8 bits for each of its own. What that rounds off changes the
// likeness of two vectors by less than a thousandth.
func pack(v []float32) []byte {
	most := float32(0)
	for _, n := range v {
		most = max(most, n, -n)
	}
	scale := max(most/math.MaxInt8, math.SmallestNonzeroFloat32)
	data := make([]byte, scaleBytes, scaleBytes+len(v))
	binary.LittleEndian.PutUint32(data, math.Float32bits(scale))
	for _, n := range v {
		data = append(data, byte(int8(math.Round(float64(n/scale)))))
	}
	return data
}

// alike says how alike a vector and a packed one are: 1 is the same, 0 has nothing to do with it. Those of different
// dimensions are not.
func alike(v []float32, data []byte) float32 {
	if len(data) != scaleBytes+len(v) {
		return 0
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(data))
	var a, b, c, d float32 // four sums, which a processor adds up at the same time
	numbers := data[scaleBytes:]
	for len(v) >= 4 && len(numbers) >= 4 {
		a += v[0] * float32(int8(numbers[0]))
		b += v[1] * float32(int8(numbers[1]))
		c += v[2] * float32(int8(numbers[2]))
		d += v[3] * float32(int8(numbers[3]))
		v, numbers = v[4:], numbers[4:]
	}
	for i, n := range v {
		a += n * float32(int8(numbers[i]))
	}
	return (a + b + c + d) * scale
}

// nearest returns the facts whose vectors stand out from all of them in likeness to one, the most alike first.
func nearest(v []float32, vectors map[string][]byte) []near {
	type scored struct {
		id   string
		like float64
	}
	var all []scored
	sum, squares := 0.0, 0.0
	for id, data := range vectors {
		if len(data) != scaleBytes+len(v) {
			continue
		}
		like := float64(alike(v, data))
		all = append(all, scored{id, like})
		sum, squares = sum+like, squares+like*like
	}
	n := float64(len(all))
	mean := sum / max(n, 1)
	spread := math.Sqrt(max(squares/max(n, 1)-mean*mean, 1e-12))
	slices.SortFunc(all, func(a, b scored) int { return cmp.Or(cmp.Compare(b.like, a.like), cmp.Compare(a.id, b.id)) })
	var found []near
	for _, one := range all {
		out := (one.like - mean) / spread
		if out < somehow {
			break
		}
		found = append(found, near{one.id, out})
	}
	return found
}
