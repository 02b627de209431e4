package label_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/container/label"
)

// Only objects of a process of this host that has certainly ended are abandoned.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	var own string
	for _, arg := range label.Args("a run", "/state") {
		if rest, ok := strings.CutPrefix(arg, "ralph.process="); ok {
			own = rest
		}
	}
	pid, rest, _ := strings.Cut(own, " ")
	_, host, ok := strings.Cut(rest, " ")
	if !ok {
		t.Fatalf("the label of this process is %q", own)
	}
	for process, want := range map[string]bool{
		own: false, pid + " 0@before " + host: true, pid + " 0@before " + host + "x": false, "": false, "x y z": false,
	} {
		name, ended, err := label.Abandoned(`{"ralph.run":"a run","ralph.process":"` + process + `"}`)
		if err != nil || ended != want || ended && name != "a run" {
			t.Errorf("%q: %q, %t, %v", process, name, ended, err)
		}
	}
	if _, ended, err := label.Abandoned(""); ended || err != nil {
		t.Errorf("gone: %t, %v", ended, err)
	}
	if _, _, err := label.Abandoned("x"); err == nil {
		t.Error("no error")
	}
}
