package agents

import "strings"

// Codex is the Codex CLI, the program codex. The zero value is ready.
//
// Without a permission mode and without skipping permissions it works under its own workspace-write sandbox. The
// sandbox mode goes through -c, because `codex exec resume` knows no -s; the check for a git repository is skipped,
// because ralph has made the worktree and codex would ask to trust it.
type Codex struct{}

var _ Agent = Codex{}

const (
	codexMissing = "install Codex where the agent runs, or choose another with --agent"
	codexLogin   = "run codex login, or pass a key with --agent-env OPENAI_API_KEY or CODEX_API_KEY"
)

// Name returns "codex".
func (Codex) Name() string { return "codex" }

func codexEfforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh"} }

func codexModes() []string { return []string{"read-only", "workspace-write", "danger-full-access"} }

// Check refuses an unknown effort or sandbox mode, a malformed model, and extra arguments that are ralph's own.
func (c Codex) Check(o Options) error {
	if err := checkModel(c.Name(), o.Model); err != nil {
		return err
	}
	if err := checkChoice(c.Name(), "--effort", o.Effort, codexEfforts()); err != nil {
		return err
	}
	if err := checkChoice(c.Name(), "--permission-mode", o.PermissionMode, codexModes()); err != nil {
		return err
	}
	if err := checkUnused(c.Name(), "--agent-command", strings.Join(o.Command, " "), "use it with --agent command"); err != nil {
		return err
	}
	if err := checkEnv(c.Name(), o.Env); err != nil {
		return err
	}
	return checkArgs(c.Name(), o.Args, map[string]string{
		"--json": "", "--skip-git-repo-check": "", "--last": "", "-": "",
		"-m": "--model", "--model": "--model", "-s": "--permission-mode", "--sandbox": "--permission-mode",
		"--dangerously-bypass-approvals-and-sandbox": "--skip-permissions", "--yolo": "--skip-permissions",
	})
}

// Invocation builds the command line; the prompt is on stdin, for which the argument "-" stands.
func (c Codex) Invocation(r Request) (Invocation, error) {
	o := r.Options
	if err := c.Check(o); err != nil {
		return Invocation{}, err
	}
	if err := checkRequest(c.Name(), r); err != nil {
		return Invocation{}, err
	}
	argv := []string{"codex", "exec"}
	switch {
	case r.Fork:
		argv = append(argv, "fork", r.Session)
	case r.Session != "":
		argv = append(argv, "resume", r.Session)
	}
	argv = append(argv, "--json", "--skip-git-repo-check")
	switch {
	case o.PermissionMode != "":
		argv = append(argv, "-c", `sandbox_mode="`+o.PermissionMode+`"`)
	case o.SkipPermissions:
		argv = append(argv, "--dangerously-bypass-approvals-and-sandbox")
	default:
		argv = append(argv, "-c", `sandbox_mode="workspace-write"`)
	}
	if o.Model != "" {
		argv = append(argv, "-m", o.Model)
	}
	if o.Effort != "" {
		argv = append(argv, "-c", `model_reasoning_effort="`+o.Effort+`"`)
	}
	argv = append(argv, "-") // before the extra arguments, of which one may take every value that follows
	return Invocation{
		Argv:  append(argv, o.Args...),
		Stdin: strings.ToValidUTF8(r.Prompt, "\uFFFD"),
		Env:   environ(o.Env, facts(r.Vars)),
	}, nil
}

// NewDecoder returns a decoder for one process.
func (Codex) NewDecoder() Decoder { return &codexDecoder{} }
