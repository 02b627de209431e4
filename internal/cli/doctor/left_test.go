package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/container/label"
	"github.com/ralph-pool/ralph/tracker"
)

// Unused containers and volumes are reported with the command that removes them.
func TestDoctorNamesWhatEnginesHave(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "docker")
	helper := "ralph-" + label.ID("left") + "-disk-helper"
	script := fmt.Sprintf(`#!/bin/sh
case "$1 $2" in
ps*) echo box;;
"volume ls") echo %s; echo %s;;
*inspect) echo '{"ralph.run":"left","ralph.process":"%d 0@before %s"}';;
esac
`, helper, "ralph-"+label.ID("left")+"-disk-filled", os.Getpid(), host)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	e := container.Docker()
	e.Command = []string{program}
	d := &doctor{}
	d.containers(t.Context(), container.New(e, container.Config{StateDir: t.TempDir(), HostEnv: os.Environ()}))
	want := []tracker.Finding{
		{Subject: "containers", Severity: tracker.Warn, Detail: "1 unused container, such as box", Fix: "ralph clean"},
		{Subject: "volumes", Severity: tracker.Warn, Detail: "unused, of 1 run, such as ralph-" + label.ID("left") +
			"-disk-*; some may have work that is not imported", Fix: "ralph clean"},
	}
	if diff := cmp.Diff(want, d.findings); diff != "" {
		t.Error(diff)
	}
}
