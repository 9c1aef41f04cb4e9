package calc

import (
	"errors"
	"strings"
	"testing"
)

func TestEval(t *testing.T) {
	for text, want := range map[string]string{
		"1+2": "3", "0.1+0.2": "0.3", "2+3*4": "14", "(2+3)*4": "20", "10-4-3": "3", "2^3^2": "512", "-2^2": "-4", "(-2)^2": "4", "2^-2": "0.25", "1/8": "0.125",
		"10/4": "2.5", "7 % 3": "1", "7%3": "1", "-7 mod 3": "2", "15%": "0.15", "200*15%": "30", "15% + 1": "1.15", "10%(3)": "1", "5!": "120", "3.5e3": "3500", "1,234,567.5*2": "2469135",
		"1/3": "≈0.333333333333", "2/3": "≈0.666666666667", "1/3*3": "1", "sqrt(16)": "4", "sqrt 2": "≈1.41421356237", "sqrt(2)^2": "≈2", "√9": "3", "sqrt(1/4)": "0.5", "9^0.5": "3", "2^0.5": "≈1.41421356237", "8^(1/3)": "≈2",
		"sin(30°)": "≈0.5", "sin(0)": "≈0", "cos(pi)": "≈-1", "tan(45°)": "≈1", "ln(e)": "≈1", "log(1000)": "≈3", "exp(0)": "≈1", "cbrt(27)": "≈3", "pi": "≈3.14159265359", "π*2": "≈6.28318530718",
		"abs(-3.2)": "3.2", "round(2.5)": "3", "round(-2.5)": "-3", "floor(-1.5)": "-2", "ceil(1.2)": "2", "min(3,1,2)": "1", "max(3, 1, 2)": "3", "pow(2,10)": "1024",
		"2^100": "1267650600228229401496703205376", "2^200": "≈1.60693804426e+60", "30!": "265252859812191058636308480000000", "0^0": "1", "0^5": "0", "(-1)^99999999999999999999": "-1", "1^99999": "1",
		"1+2=": "3", "1+2等于多少？": "3", "－5＋（3）": "-2", ".5*2": "1", "5.": "5", "1e-3": "0.001", "1/1024": "0.0009765625", "1e300*1e300": "≈1e+600", "1/7e10": "≈1.42857142857e-11",
		"二十加两": "22", "三点五乘以两": "7", "二十除以十": "2", "二十减去两": "18", "两的十次方": "1024", "九的平方根": "3", "根号九": "3", "九的平方": "81", "百分之二十": "0.2", "二十的百分之十": "2", "十乘百分之二十": "2", "负两": "-2", "两的立方加十": "18", "5的阶乘": "120",
		"3 plus 4": "7", "10 divided by 4": "2.5", "6 times 7": "42", "15 percent of 80": "12", "50 percent": "0.5", "3 squared": "9", "2 to the power of 8": "256", "the square root of 81": "9", "7 mod 4": "3", "3 × 4 ÷ 2": "6", "2**3": "8", "5²": "25", "half": "",
	} {
		r, err := Eval(text)
		got := r.Text
		if !r.Exact && got != "" {
			got = "≈" + got
		}
		if want == "" {
			if err == nil {
				t.Errorf("%s = %s, want an error", text, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s = %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": "syntax at sign 1, near the end", "1+": "syntax at sign 3, near the end", "1 2": "syntax at sign 3, near 2", "(1": "syntax at sign 3, near the end", "1)": "syntax at sign 2, near )",
		"1/0": "division by zero at sign 2, near /", "1%(2-2)": "division by zero at sign 2, near %", "0^-1": "division by zero at sign 2, near ^", "5+x*2": "syntax at sign 3, near x", "foo(1)": "syntax at sign 1, near foo",
		"sqrt(-1)": "undefined at sign 1, near sqrt", "(-8)^0.5": "undefined at sign 5, near ^", "ln(0)": "undefined at sign 1, near ln", "(-3)!": "undefined at sign 5, near !", "2.5!": "undefined at sign 4, near !",
		"9^9^9": "too large at sign 2, near ^", "1000!": "too large at sign 5, near !", "10^99999": "too large at sign 3, near ^", "exp(1000)": "too large at sign 1, near exp",
		"sqrt(1,2)": "syntax at sign 1, near sqrt", "pow(2)": "syntax at sign 1, near pow", "1 $ 2": "syntax at sign 3, near $", "二十加": "syntax at sign 4, near the end", "两的十": "syntax at sign 4, near the end", "1e9999": "syntax at sign 2, near e", ".": "syntax at sign 1, near .",
		"import os": "syntax at sign 1, near import", "*3": "syntax at sign 1, near *",
	} {
		_, err := Eval(text)
		if e, ok := errors.AsType[*Error](err); !ok || e.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for name, text := range map[string]string{"deep": strings.Repeat("(", 500), "signs": strings.Repeat("-", 900) + "1", "long": strings.Repeat("1+", 900)} {
		_, err := Eval(text)
		if e, ok := errors.AsType[*Error](err); !ok || e.Cause != TooLarge {
			t.Errorf("%s: %v, want too large", name, err)
		}
	}
}

func FuzzEval(f *testing.F) {
	for _, s := range []string{"1+2*3", "(2^10)%7", "sqrt(2)", "15% of 80", "二十加两", "9^9^9", "5!!", "min(1,2", "1/3", "1,234.5e10", "2的十次方", "((((((1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Eval(text)
		if (err == nil) == (r.Text == "") || len(r.Text) > 200 {
			t.Errorf("Eval(%q) = %+v, %v", text, r, err)
		}
	})
}
