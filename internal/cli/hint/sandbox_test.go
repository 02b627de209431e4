package hint

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

func TestSandboxFix(t *testing.T) {
	t.Parallel()
	for want, fixes := range map[string][]sandboxes.Fix{
		"choose another sandbox with --sandbox":                              {{Setting: sandboxes.SetProvider}},
		"build the image with: ralph image build --engine podman":            {{Setting: sandboxes.SetImage, Value: "podman"}},
		"copy the files: --container-files copy, or remove --container-user": {{Setting: sandboxes.SetCopy}, {Setting: sandboxes.SetUser}},
		"name the user that runs commands: --container-user 0:0, or copy the files for another user: --container-files copy --container-user 1:1": {
			{Setting: sandboxes.SetUser, Value: "0:0"}, {Setting: sandboxes.SetCopy, Value: "1:1"},
		},
		"name a runtime of the engine with --container-runtime, or remove that flag": {{Setting: sandboxes.SetRuntime}},
		"to accept this: --container-unbounded":                                      {{Setting: sandboxes.SetUnbounded}},
		"raise --memory-mb, or raise --cpus":                                         {{Setting: sandboxes.SetMemory}, {Setting: sandboxes.SetCPUs}},
		"move it out of /dev, /proc and /sys (the worktrees are in state-dir), or choose another sandbox with --sandbox": {
			{Setting: sandboxes.SetFolder}, {Setting: sandboxes.SetProvider},
		},
	} {
		if got := Sandbox(fmt.Errorf("open: %w", sandboxes.Fixable(errors.New("no"), fixes...))); got != want {
			t.Errorf("%v: %q, want %q", fixes, got, want)
		}
	}
	if got := Sandbox(errors.New("no")); got != "" {
		t.Errorf("another error: %q", got)
	}
}
