package workspace

import (
	"context"
	"testing"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
)

// imaged is a provider whose programs come with an image.
type imaged struct {
	sandboxes.Provider
	image string
}

func (i imaged) HomeKey(context.Context) (string, error) { return i.image, nil }

// What the gate said with the programs of one image is not taken for what it says with another's.
func TestResultsOfAnotherImage(t *testing.T) {
	t.Parallel()
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	name := func(p sandboxes.Provider) string {
		return NewBaselines(&Config{Sandboxes: p}, t.TempDir()).name(t.Context(), Baseline{})
	}
	first := name(imaged{none, "one"})
	if again := name(imaged{none, "one"}); again != first {
		t.Errorf("%s and then %s", first, again)
	}
	if other := name(imaged{none, "two"}); other == first {
		t.Error("another image has the same name")
	}
}

// A gate that fails on the base is a fact for the agent, unless it says that it lacked a connection.
func TestGateThatLacksAConnection(t *testing.T) {
	t.Parallel()
	refused := []string{"network: registry.example.com:443 was refused (not-allowed), 1 time"}
	for name, test := range map[string]struct {
		tail    string
		refused []string
		ran     bool
	}{
		"fails by itself":         {"not ok 1 - adds\n# fail 1\n", nil, true},
		"and something else asks": {"not ok 1 - adds\n# fail 1\n", refused, true},
		"names the host":          {"error: GET https://registry.example.com/left-pad\n", refused, false},
		"names none":              {"npm error code ENOTFOUND\n", refused, false},
		"through the proxy":       {"CONNECT tunnel failed, response 403\n", refused, false},
		"resolves none":           {"curl: (6) Could not resolve host: other.example\n", refused, false},
		"nothing was refused":     {"npm error code ENOTFOUND\n", nil, true},
	} {
		c := Checked{Checks: []loop.Check{{Command: "npm test", ExitCode: 1, Tail: test.tail}}, Refused: test.refused}
		if c.ran() != test.ran {
			t.Errorf("%s: it ran: %t, want %t", name, c.ran(), test.ran)
		}
	}
}

func TestCauseOfAFailure(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "one\ntwo\n": "two",
		"npm error Missing script: \"nope\"\nnpm error\nnpm error A complete log of this run is in a folder\n": `npm error Missing script: "nope"`,
		"  ModuleNotFoundError: No module named 'app'\n\nRan 1 test in 0.000s\n\nFAILED (errors=1)\n":          "ModuleNotFoundError: No module named 'app'",
		"sh: 1: tool: not found\n": "sh: 1: tool: not found",
	} {
		if got := causeLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
