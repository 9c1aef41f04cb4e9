// Package dsp holds the arithmetic that the resampler, the fades and the echo
// canceller share. The race detector makes its inner loops ten times as slow and
// has nothing to find in them, for they see only what their caller hands in: those
// marked norace are built without it.
package dsp

import "math"

// Dot returns the dot product of two slices of one length, a multiple of four.
//
//go:norace
func Dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	return (s0 + s1) + (s2 + s3)
}

// Round returns the sample nearest to v. A value beyond the range of a sample is clipped.
func Round(v float32) int16 {
	return int16(max(math.MinInt16, min(math.MaxInt16, math.Floor(float64(v)+0.5))))
}

// Sinc returns sin(πx)/(πx), and 1 for 0.
func Sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	return math.Sin(math.Pi*x) / (math.Pi * x)
}
