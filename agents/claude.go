package agents

import "strings"

// Claude is Claude Code, the program claude. The zero value is ready.
//
// Its process gets DISABLE_AUTOUPDATER=1 (several share one installation) and CLAUDE_CODE_MAX_RETRIES=3 (by itself
// claude retries ten times, a refused key too, which takes minutes). When permissions are skipped it gets IS_SANDBOX=1
// as well, without which claude refuses that as root; other values, such as "yes", do not count. Options.Env wins over
// all three.
type Claude struct{}

var _ Agent = Claude{}

const (
	claudeMissing = "install Claude Code where the agent runs, or choose another with --agent"
	claudeLogin   = "log in with claude, or pass a key with --agent-env ANTHROPIC_API_KEY"
)

// Name returns "claude-code".
func (Claude) Name() string { return "claude-code" }

func claudeEfforts() []string { return []string{"low", "medium", "high", "xhigh", "max"} }

func claudeModes() []string {
	return []string{"default", "acceptEdits", "plan", "auto", "dontAsk", "manual", "bypassPermissions"}
}

// Check refuses an unknown effort or permission mode, a malformed model, and extra arguments that are ralph's own.
func (c Claude) Check(o Options) error {
	if err := checkModel(c.Name(), o.Model); err != nil {
		return err
	}
	if err := checkChoice(c.Name(), "--effort", o.Effort, claudeEfforts()); err != nil {
		return err
	}
	if err := checkChoice(c.Name(), "--permission-mode", o.PermissionMode, claudeModes()); err != nil {
		return err
	}
	if err := checkUnused(c.Name(), "--agent-command", strings.Join(o.Command, " "), "use it with --agent command"); err != nil {
		return err
	}
	if err := checkEnv(c.Name(), o.Env); err != nil {
		return err
	}
	return checkArgs(c.Name(), o.Args, map[string]string{
		"-p": "", "--print": "", "--verbose": "", "--output-format": "", "--input-format": "",
		"-r": "", "--resume": "", "-c": "", "--continue": "", "--fork-session": "", "--session-id": "",
		"--model": "--model", "--effort": "--effort", "--permission-mode": "--permission-mode",
		"--dangerously-skip-permissions": "--skip-permissions",
	})
}

// Invocation builds the command line; the prompt is on stdin.
func (c Claude) Invocation(r Request) (Invocation, error) {
	o := r.Options
	if err := c.Check(o); err != nil {
		return Invocation{}, err
	}
	if err := checkRequest(c.Name(), r); err != nil {
		return Invocation{}, err
	}
	argv := []string{"claude", "-p", "--verbose", "--output-format", "stream-json"}
	env := []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=3"}
	switch {
	case o.PermissionMode != "":
		argv = append(argv, "--permission-mode", o.PermissionMode)
	case o.SkipPermissions:
		argv = append(argv, "--dangerously-skip-permissions")
	}
	if o.SkipPermissions {
		env = append(env, "IS_SANDBOX=1")
	}
	if o.Model != "" {
		argv = append(argv, "--model", o.Model)
	}
	if o.Effort != "" {
		argv = append(argv, "--effort", o.Effort)
	}
	if r.Session != "" {
		argv = append(argv, "--resume", r.Session)
	}
	if r.Fork {
		argv = append(argv, "--fork-session")
	}
	return Invocation{
		Argv:  append(argv, o.Args...),
		Stdin: strings.ToValidUTF8(r.Prompt, "\uFFFD"),
		Env:   environ(env, o.Env, facts(r.Vars)),
	}, nil
}

// NewDecoder returns a decoder for one process.
func (Claude) NewDecoder() Decoder { return &claudeDecoder{} }
