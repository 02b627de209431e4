package session_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// A session prepares a workspace, runs commands in it, and collects the results.
func Example() {
	dir, err := os.MkdirTemp("", "session-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	s, err := session.Prepare(ctx, session.Config{
		// "none" runs everywhere and isolates nothing; package native and package container isolate.
		Provider: sandboxes.NewNone(sandboxes.NoneConfig{}),
		Spec:     sandboxes.Spec{Worktree: dir},
		Outputs:  []string{"report/*.txt"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Cleanup(ctx) }()

	if err := s.Workspace.PutFile("names", "Ada\nGrace\n"); err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Run(ctx, sandboxes.Command{
		Argv: []string{"sh", "-c", "mkdir report && sort -r names >report/sorted.txt && echo done"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := result.Err(); err != nil { // includes the end of standard error
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", result.Stdout)

	artefacts, err := s.Collect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range artefacts.Files {
		fmt.Println(f.Path, strings.Fields(string(f.Content)))
	}
	// Output:
	// done
	// report/sorted.txt [Grace Ada]
}

// The diff contains all changes since Prepare, committed or not.
func ExampleSession_Collect() {
	dir, err := os.MkdirTemp("", "session-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	box, err := none.Open(ctx, sandboxes.Spec{Run: "example-init", Worktree: dir})
	if err == nil {
		_, err = box.Exec(ctx, sandboxes.Command{Argv: []string{"git", "init", "--quiet"}})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = box.Close(ctx) }()

	s, err := session.Prepare(ctx, session.Config{Provider: none, Spec: sandboxes.Spec{Worktree: dir}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Cleanup(ctx) }()
	if err := s.Workspace.PutFile("hello.txt", "hello\n"); err != nil {
		fmt.Println(err)
		return
	}
	artefacts, err := s.Collect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(string(artefacts.Diff.Text)) {
		if strings.HasPrefix(line, "+") {
			fmt.Print(line)
		}
	}
	// Output:
	// +++ b/hello.txt
	// +hello
}
