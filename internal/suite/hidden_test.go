package suite_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/suite"
)

func TestIsBinary(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "text\n": false, "a\x00": true, strings.Repeat("x", 7999) + "\x00": true, strings.Repeat("x", 8000) + "\x00": false,
	} {
		if got := suite.IsBinary([]byte(text)); got != want {
			t.Errorf("%d bytes: %t", len(text), got)
		}
	}
}
