package agents

import (
	"fmt"
	"strconv"
	"strings"
)

// Codex is the Codex CLI, the program codex. The zero value is ready for use.
//
// Without a permission mode and without skipping permissions it works under its own workspace-write sandbox. The sandbox mode
// is set by -c, because `codex exec resume` does not support -s. The check for a git repository is skipped, because ralph has
// made the worktree and codex would ask whether to trust it.
type Codex struct{}

var _ Agent = Codex{}

// codexKey is the variable in which codex finds the placeholder.
const codexKey = "OPENAI_API_KEY"

// Name returns "codex".
func (Codex) Name() string { return "codex" }

// Describe returns the facts about Codex. The login in auth.json is an API key or a ChatGPT subscription, whose token is valid
// for days and renewed only by codex on the host. Model providers of a user's own config.toml stay with the agent.
func (Codex) Describe() Description {
	return Description{
		Program: "codex",
		Install: "npm install --global @openai/codex@0.169.0 && npm cache clean --force",
		Login: Login{
			Keys:       []Key{{Env: "CODEX_API_KEY"}, {Env: codexKey}},
			SecretVars: []string{"CODEX_ACCESS_TOKEN"},
			Dir:        ".codex", DirEnv: "CODEX_HOME", File: "auth.json", Read: codexLogin,
			Hint: "run codex login, or set OPENAI_API_KEY to a valid key",
		},
		Endpoint: &Endpoint{
			Name: "openai", Upstream: "https://api.openai.com/v1", UpstreamEnv: "OPENAI_BASE_URL",
			Routes:        []Route{{"POST", "/responses"}, {"POST", "/responses/compact"}, {"GET", "/models"}, {"GET", "/models/*"}},
			Models:        ModelNames{Families: []string{"gpt-", "codex-", "o3", "o4-"}},
			ProxySettings: pointCodex,
		},
		Sbx:         Sbx{Kind: "codex", Service: "openai", Key: codexKey, Keys: []string{codexKey, "CODEX_API_KEY"}},
		Mail:        "noreply@openai.com",
		NoCost:      true,
		IsSessionID: UUID, // resume also accepts a name
		Models:      true, Efforts: []string{"none", "minimal", "low", "medium", "high", "xhigh"},
		Modes: []string{"read-only", "workspace-write", "danger-full-access"}, ReadOnlyMode: "read-only",
		Owned: map[string]string{
			"--json": "", "--skip-git-repo-check": "", "--last": "", "-": "",
			"-m": "model", "--model": "model", "-s": "permission mode", "--sandbox": "permission mode",
			"--dangerously-bypass-approvals-and-sandbox": "skip permissions", "--yolo": "skip permissions",
		},
	}
}

// pointCodex defines the endpoint as a model provider, with arguments that override every configuration file.
func pointCodex(s Service, url, placeholder string) (env, args []string) {
	headers := ""
	if s.Account != "" {
		headers = `,http_headers={"chatgpt-account-id"=` + strconv.Quote(s.Account) + `}`
	}
	return []string{codexKey + "=" + placeholder}, []string{
		"-c", `model_provider="ralph"`,
		"-c", fmt.Sprintf(`model_providers.ralph={name="OpenAI",base_url=%s,env_key="%s",wire_api="responses"%s}`,
			strconv.Quote(url), codexKey, headers),
		"-c", `web_search="disabled"`, // the service would execute searches, past the sandbox's allow-list
		"-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false",
		// These contact github.com and chatgpt.com for features that are useless in a sandbox.
		"-c", "features.apps=false", "-c", "features.plugins=false", "-c", "features.remote_plugin=false",
	}
}

// codexLogin reads the login that codex stores. The service of a subscription is chatgpt.com, which also needs the account ID;
// that is not a secret.
func codexLogin(path string) (Token, error) {
	var file struct {
		Key    string `json:"OPENAI_API_KEY"`
		Tokens struct {
			Access  string `json:"access_token"`
			Account string `json:"account_id"`
		} `json:"tokens"`
	}
	if err := ReadLogin(path, &file); err != nil {
		return Token{}, err
	}
	switch {
	case file.Key != "":
		return Token{Secret: file.Key, Kind: "key"}, nil
	case file.Tokens.Access != "":
		return Token{
			Secret: file.Tokens.Access, Kind: "subscription", Account: file.Tokens.Account,
			Upstream: "https://chatgpt.com/backend-api/codex",
		}, nil
	}
	return Token{}, fmt.Errorf("no login in %s", path)
}

// Invocation builds the command line; the prompt is on stdin, which the argument "-" stands for.
func (c Codex) Invocation(r Request) (Invocation, error) {
	o := r.Options
	if err := r.Check(c); err != nil {
		return Invocation{}, err
	}
	argv := []string{"codex", "exec"}
	if r.Session != "" {
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
	argv = append(argv, "-") // before the extra arguments, one of which may consume all following values
	return Invocation{
		Argv:  append(argv, o.Args...),
		Stdin: strings.ToValidUTF8(r.Prompt, "\uFFFD"),
		Env:   r.Environ(),
	}, nil
}

// NewDecoder returns a decoder for one process.
func (Codex) NewDecoder() Decoder {
	return &codexDecoder{Stream: Stream{Program: "codex", IsSessionID: UUID, Refusals: []string{
		"error: unexpected argument", "error: invalid value", "Error loading config.toml",
	}}}
}
