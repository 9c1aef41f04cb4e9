package local_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"xiaozhi/internal/text/calc"
)

// eval is what a speaker's owner is told, with ≈ before what is rounded.
func eval(text string) (string, error) {
	r, err := calc.Eval(text)
	if err == nil && !r.Exact {
		return "≈" + r.Text, nil
	}
	return r.Text, err
}

// TestCalculateSpoken: sums as they are said, in both languages.
func TestCalculateSpoken(t *testing.T) {
	for text, want := range map[string]string{
		// parts of a whole
		"三分之一加百分之五": "≈0.383333333333", "二分之一加三分之一": "≈0.833333333333", "三又四分之三乘以四": "15", "八百的四分之一": "200", "三分之二的平方": "≈0.444444444444", "负二分之一": "-0.5", "十减四分之一": "9.75",
		"2的二分之一次方": "≈1.41421356237", "9的二分之一次方": "3", "二分之一的十次方": "0.0009765625", "百分之百": "1", "百分之一百二十": "1.2", "千分之三乘以一万": "30", "百分之零点五": "0.005", "二百的百分之十五": "30", "100的15%": "15", "200的15%加1": "31", "80的15 percent": "12",
		// large numbers
		"1.5万加2": "15002", "3万5千加1": "35001", "3亿5千万除以2": "175000000", "3千乘以2": "6000", "五千万除以二": "25000000", "三点五万加一点二亿": "120035000", "1万乘以2": "20000", "2 million times 3": "6000000", "5 thousand plus 1": "5001", "5万分之一": "0.00002",
		// what is said for signs
		"一百二十乘以三": "360", "2的10次方": "1024", "二的负三次方": "0.125", "二的十次方减一": "1023", "27的立方根": "≈3", "16开平方": "4", "根号下十六": "4", "五平方加十二平方": "169", "sin30度": "≈0.5", "30度": "≈0.523598775598", "3x4": "12", "3 x 4 x 5": "60", "2 + 3X4": "14",
		"negative five plus two": "-3", "two plus two": "4", "twenty five times four": "100", "one hundred and twenty times three": "360", "three point one four times two": "6.28", "the square root of sixteen": "4", "cube root of 27": "≈3", "five squared plus three squared": "34", "seven mod four": "3", "one over eight": "0.125", "ten to the power of three": "1000",
		// what is said around them
		"请问一加一等于多少": "2", "计算一加一": "2", "what is 2 plus 2?": "4", "算一下 3*4 =": "12",
		// commas: in numbers, and between arguments
		"max(3,100)": "100", "min(5,200)": "5", "pow(2,100)": "1267650600228229401496703205376", "max(1,234,5)": "234", "max(1,2)+1,234": "1236", "max(min(7,100),2)": "7", "1,234+1": "1235", "1,234,567": "1234567", "sqrt(1,024)": "",
		// precedence and association
		"100-20*3": "40", "9/3*3": "9", "2-3-4": "-5", "2+3*4^2": "50", "-3^2": "-9", "(-3)^2": "9", "2^-1": "0.5", "2*-3": "-6", "3--3": "6", "10 mod 3 * 2": "2", "50%*2": "1", "5!/3!": "20", "2(3)": "", "3π": "", "tan(90°)": "", "tan 270°": "",
	} {
		got, err := eval(text)
		if (err == nil) != (want != "") || got != want {
			t.Errorf("%s = %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestCalculateErrorPlace: an error counts the signs of what was said, from its beginning.
func TestCalculateErrorPlace(t *testing.T) {
	for text, want := range map[string]string{
		"请问三除以零": "division by zero at sign 4, near 除以", "  1 / 0": "division by zero at sign 5, near /", "零分之一": "division by zero at sign 2, near 分之", "三分之": "syntax at sign 4, near the end", "一千克加二": "syntax at sign 3, near 克",
		"12345,678": "syntax at sign 6, near ,", "1,23": "syntax at sign 2, near ,", "5 apples": "syntax at sign 3, near apples", "a + 1": "syntax at sign 1, near a", "3 x": "syntax at sign 3, near x", "2的": "syntax at sign 3, near the end", "3万万": "syntax at sign 3, near 万",
	} {
		if got, err := eval(text); err == nil || err.Error() != want {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

// sum makes an expression and works it out beside the package.
func sum(r *rand.Rand, depth int) (string, *big.Rat) {
	if depth == 0 || r.IntN(4) == 0 {
		n := r.Int64N(1000)
		if r.IntN(3) == 0 {
			return fmt.Sprintf("%d.%02d", n, n%100), big.NewRat(n*100+n%100, 100)
		}
		return fmt.Sprint(n), big.NewRat(n, 1)
	}
	a, x := sum(r, depth-1)
	b, y := sum(r, depth-1)
	out := new(big.Rat)
	switch r.IntN(5) {
	case 0:
		return "(" + a + " + " + b + ")", out.Add(x, y)
	case 1:
		return "(" + a + "减" + b + ")", out.Sub(x, y)
	case 2:
		return "(" + a + "×" + b + ")", out.Mul(x, y)
	case 3:
		return "(-" + a + ")", out.Neg(x)
	}
	if y.Sign() == 0 {
		return a, x
	}
	return "(" + a + " divided by " + b + ")", out.Quo(x, y)
}

// TestSums holds a few thousand sums against exact arithmetic: what is said to
// be exact is, and what is rounded is right to its digits.
func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	exact := 0
	for range 4000 {
		text, want := sum(r, 4)
		got, err := calc.Eval(text)
		if err != nil {
			if e, ok := errors.AsType[*calc.Error](err); len(text) > 1000 && ok && e.Cause == calc.TooLarge {
				continue
			}
			t.Fatalf("%s: %v", text, err)
		}
		v, ok := new(big.Rat).SetString(got.Text)
		if !ok {
			t.Fatalf("%s = %s, which is no number", text, got.Text)
		}
		if got.Exact {
			exact++
			if v.Cmp(want) != 0 {
				t.Fatalf("%s = %s, want %s", text, got.Text, want)
			}
			continue
		}
		off := new(big.Rat).Sub(v, want)
		if want.Sign() != 0 {
			off.Quo(off, want)
		}
		if f, _ := off.Float64(); math.Abs(f) > 1e-11 {
			t.Fatalf("%s = ≈%s, want %s: off by %g", text, got.Text, want.FloatString(20), f)
		}
	}
	if exact < 1000 {
		t.Errorf("only %d of 4000 sums are exact", exact)
	}
}

// FuzzSumAgain: a result is a number again, and that number comes to itself; no
// result is NaN or infinite.
func FuzzSumAgain(f *testing.F) {
	for _, s := range []string{"1/3", "2^200", "三分之一加百分之五", "3万5千加1", "max(3,100)", "-1e-30", "0.1^15", "sin(30°)", "log(0.001)", "1e15+0.5", "9的二分之一次方", "sqrt(2)^2 - 2", "tan(90°)", "1e-300*1e-300", "(-8)^(1/3)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := calc.Eval(text)
		if err != nil {
			if e, ok := errors.AsType[*calc.Error](err); !ok || e.At < 1 {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if strings.ContainsAny(r.Text, "NIni") || r.Text == "" {
			t.Fatalf("%q = %q", text, r.Text)
		}
		again, err := calc.Eval("(" + r.Text + ")")
		if _, exponent, _ := strings.Cut(r.Text, "e"); len(exponent) > len("+999") {
			return // more than anybody writes
		}
		v, ok := new(big.Rat).SetString(r.Text)
		w, same := new(big.Rat).SetString(again.Text)
		if err != nil || !ok || !same || again.Exact && v.Cmp(w) != 0 {
			t.Errorf("%q = %q, which is %q, %v", text, r.Text, again.Text, err)
		}
	})
}
