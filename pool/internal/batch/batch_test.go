package batch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/internal/batch"
)

// The failing branches are found, whatever their number and places, and all others land; no set that is known to fail is tried
// again.
func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list, bad string
		calls     string // sets tried together, and single ones
	}{
		{"", "", ""},
		{"a", "", "a"},
		{"ab", "", "ab"},
		{"abcd", "", "abcd"},
		{"abcd", "a", "abcd ab a b cd"},
		{"abcd", "d", "abcd ab c d"},
		{"abcd", "bc", "abcd ab a b cd c d"},
		{"ab", "ab", "ab a b"},
		{"abcdefgh", "h", "abcdefgh abcd ef g h"},
		{"abcde", "c", "abcde ab c de"},
	} {
		var calls []string
		landed := ""
		passes := func(set string) bool {
			calls = append(calls, set)
			if strings.ContainsAny(set, c.bad) && c.bad != "" {
				return false
			}
			landed += set
			return true
		}
		err := batch.Split([]rune(c.list), func(set []rune) (bool, error) { return passes(string(set)), nil },
			func(r rune) (bool, error) { return passes(string(r)), nil })
		if got := strings.Join(calls, " "); err != nil || got != c.calls {
			t.Errorf("%s without %s: %s, want %s; %v", c.list, c.bad, got, c.calls, err)
		}
		for _, r := range c.list {
			if in := strings.ContainsRune(landed, r); in == strings.ContainsRune(c.bad, r) || strings.Count(landed, string(r)) > 1 {
				t.Errorf("%s without %s: %s landed", c.list, c.bad, landed)
			}
		}
	}
}

// If two fail only together, the first lands, and the second is named.
func TestSplitOfTwoThatDoNotFit(t *testing.T) {
	t.Parallel()
	var landed []string
	all := func(set ...string) (bool, error) {
		both := append(slices.Clone(landed), set...)
		if slices.Contains(both, "b") && slices.Contains(both, "c") {
			return false, nil
		}
		landed = both
		return true, nil
	}
	err := batch.Split(strings.Split("abcd", ""), func(set []string) (bool, error) { return all(set...) }, func(s string) (bool, error) { return all(s) })
	if got := fmt.Sprint(landed); err != nil || got != "[a b d]" {
		t.Errorf("%s, %v", got, err)
	}
}

// The first error ends Split.
func TestSplitFails(t *testing.T) {
	t.Parallel()
	calls := 0
	err := batch.Split([]int{1, 2, 3}, func([]int) (bool, error) { calls++; return false, fmt.Errorf("no disk") }, func(int) (bool, error) { calls++; return true, nil })
	if err == nil || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
