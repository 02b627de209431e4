package agents_test

import (
	"fmt"

	"github.com/ralph-pool/ralph/agents"
)

// An agent defines how to start its program and how to interpret the program's output; the caller runs it.
func Example() {
	registry := agents.NewRegistry(agents.Builtin()...)
	agent, err := registry.Lookup("codex")
	if err != nil {
		fmt.Println(err)
		return
	}
	invocation, err := agent.Invocation(agents.Request{
		Prompt:  "Make the tests pass.",
		Options: agents.Options{Model: "gpt-5.5", SkipPermissions: true},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(invocation.Argv)

	decoder := agent.NewDecoder()
	for _, line := range []string{
		`{"type":"thread.started","thread_id":"01a1fb35-6121-7612-a5db-bc6768247b48"}`,
		`{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}`,
		`{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}`,
	} {
		for _, event := range decoder.Line([]byte(line)) {
			fmt.Printf("%s %q\n", event.Kind, event.Session+event.Text)
		}
	}
	report := decoder.Finish(agents.Ending{ExitCode: 1})
	fmt.Println(report.Failure)
	// Output:
	// [codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -m gpt-5.5 -]
	// session "01a1fb35-6121-7612-a5db-bc6768247b48"
	// message "Done."
	// rate-limit: exceeded retry limit, last status: 429 Too Many Requests
}
