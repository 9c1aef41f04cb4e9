package local_test

import (
	"encoding/json"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
)

func TestCalculate(t *testing.T) {
	box := beside(t, nil, local.Options{})
	for name, test := range map[string]struct {
		language, expression string
		action               mcp.Action
		want                 string
	}{
		"exact":           {"zh", "0.1+0.2", mcp.ActionTypeReqLLM, "0.1+0.2 = 0.3"},
		"rounded":         {"en", "1/3", mcp.ActionTypeReqLLM, "1/3 ≈ 0.333333333333"},
		"Chinese":         {"zh", "一百二十三点五加上二十五乘以四等于多少", mcp.ActionTypeReqLLM, "一百二十三点五加上二十五乘以四等于多少 = 223.5"},
		"a hundredth":     {"zh", "八百的百分之十五", mcp.ActionTypeReqLLM, "八百的百分之十五 = 120"},
		"division, zh":    {"zh", "1/0", mcp.ActionTypeError, "不能除以零（第 2 个字符）"},
		"division, en":    {"en", "1/0", mcp.ActionTypeError, "division by zero (at sign 2)"},
		"too large":       {"en", "9^9^9", mcp.ActionTypeError, "the expression or a number in it is too large"},
		"no such thing":   {"zh", "sqrt(-1)", mcp.ActionTypeError, "没有结果：第 1 个字符处的 sqrt"},
		"not clear, en":   {"en", "1+", mcp.ActionTypeError, "the expression is not clear: the end at sign 3"},
		"not clear, zh":   {"zh", "1+", mcp.ActionTypeError, "看不懂算式：第 3 个字符处的 末尾"},
		"nothing, really": {"en", "os.Exit(1)", mcp.ActionTypeError, "the expression is not clear: os at sign 1"},
	} {
		arguments, err := json.Marshal(map[string]string{"expression": test.expression})
		if err != nil {
			t.Fatal(err)
		}
		r := call(t, box, test.language, "calculate", string(arguments))
		if r.Action != test.action || r.Result != test.want {
			t.Errorf("%s: %s %v, want %s", name, r.Action, r.Result, test.want)
		}
	}
}
