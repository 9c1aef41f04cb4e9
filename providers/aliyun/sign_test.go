package aliyun

import (
	"maps"
	"testing"
)

func TestSignature(t *testing.T) {
	common := map[string]string{"AccessKeyId": "testid", "SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0"}
	tests := map[string]struct {
		more map[string]string
		want string
	}{
		"the vendor's example": {map[string]string{
			"Action": "DescribeRegions", "Format": "XML", "SignatureNonce": "3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf",
			"Timestamp": "2016-02-23T12:46:24Z", "Version": "2014-05-26",
		}, "OLeaidS1JvxuMvnyHOwuJ+uX5qY="},
		"a token": {map[string]string{
			"Action": "CreateToken", "Format": "JSON", "RegionId": "cn-shanghai", "SignatureNonce": "0123456789abcdef",
			"Timestamp": "2023-11-14T22:13:20Z", "Version": "2019-02-28",
		}, "/pHBRJ74+nKRbnwbi3yOD9QX7ho="},
	}
	for name, test := range tests {
		maps.Copy(test.more, common)
		if got := signature("testsecret", canonical(test.more)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := escape("a b*c~d/e+f"); got != "a%20b%2Ac~d%2Fe%2Bf" {
		t.Errorf("escaped to %s", got)
	}
}
