package pattern

import (
	"strings"
	"testing"
)

func TestValid(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]bool{
		"": true, "src/**": true, "*.{go,mod}": true, "{a,{b,c}}/*": true, `\{a,b\}`: true, "a{": false, "[": false,
		strings.Repeat("{a,b}", 8): true, strings.Repeat("{a,b}", 9): false, strings.Repeat("{a,a}", 40) + "c": false,
		"{" + strings.Repeat("a,", 255) + "a}": true, "{" + strings.Repeat("{a,b},", 129) + "a}": false,
		strings.Repeat("{x,", 20) + "x" + strings.Repeat("}", 20): true, "a,b": true,
		strings.Repeat("{,}", 40) + "[{]x": false, strings.Repeat("{,}", 40) + `[\]{]x`: false, "[{]": true, "[^{}]{a,b}": true,
	} {
		if got := Valid(p); got != want {
			t.Errorf("%.40q: %t", p, got)
		}
	}
}
