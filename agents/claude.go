package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Claude is Claude Code, the program claude. The zero value is ready for use.
//
// Its process gets DISABLE_AUTOUPDATER=1, because several processes share one installation, and CLAUDE_CODE_MAX_RETRIES=3:
// by default claude retries ten times, even with a rejected key, which takes minutes. If permissions are skipped, it also
// gets IS_SANDBOX=1, without which claude refuses that as root; other values, such as "yes", do not work. Options.Env
// overrides all three.
type Claude struct{}

var _ Agent = Claude{}

// Name returns "claude-code".
func (Claude) Name() string { return "claude-code" }

// Describe returns the facts about Claude Code. Its subscription login in ~/.claude expires after some hours and is renewed
// only by claude on the host: for unattended work CLAUDE_CODE_OAUTH_TOKEN is the better choice, which `claude setup-token`
// creates for a year. Keys that a helper program prints stay with the agent.
func (Claude) Describe() Description {
	return Description{
		Program: "claude",
		Install: "npm install --global @anthropic-ai/claude-code@2.1.329 && npm cache clean --force",
		Login: Login{
			Keys: []Key{
				{Env: "ANTHROPIC_AUTH_TOKEN"},
				{Env: "ANTHROPIC_API_KEY", Header: "X-Api-Key", Format: "%s"},
				{Env: "CLAUDE_CODE_OAUTH_TOKEN"},
			},
			SecretVars:      []string{"CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"},
			UnsupportedVars: []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"},
			Dir:             ".claude", DirEnv: "CLAUDE_CONFIG_DIR", File: ".credentials.json", Read: claudeLogin,
			Hint: "run claude once and log in, or set ANTHROPIC_API_KEY to a valid key",
		},
		Endpoint: &Endpoint{
			Name: "anthropic", Upstream: "https://api.anthropic.com", UpstreamEnv: "ANTHROPIC_BASE_URL",
			Routes: []Route{
				{"POST", "/v1/messages"}, {"POST", "/v1/messages/count_tokens"},
				{"GET", "/v1/models"}, {"GET", "/v1/models/*"}, {"HEAD", "/"}, // with which claude checks whether it is online
			},
			Models: ModelNames{
				Aliases: map[string][]string{
					"sonnet": {"claude-sonnet-*"}, "opus": {"claude-opus-*"}, "haiku": {"claude-haiku-*"}, "fable": {"claude-fable-*"},
					"opusplan": {"claude-opus-*", "claude-sonnet-*"}, "best": {"claude-opus-*", "claude-fable-*"}, "default": nil,
					// Claude requests its newest opus for these.
					"claude-opus-4": {"claude-opus-*"}, "claude-opus-4-0": {"claude-opus-*"}, "claude-opus-4-1": {"claude-opus-*"},
				},
				Helpers: []string{"claude-haiku-*", "claude-3-5-haiku"}, // for titles, summaries and fetched pages
				Var:     "ANTHROPIC_MODEL",
				AliasVars: map[string][]string{
					"sonnet": {"ANTHROPIC_DEFAULT_SONNET_MODEL"}, "opus": {"ANTHROPIC_DEFAULT_OPUS_MODEL"},
					"haiku": {"ANTHROPIC_DEFAULT_HAIKU_MODEL"}, "fable": {"ANTHROPIC_DEFAULT_FABLE_MODEL"},
					"opusplan": {"ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL"},
					"best":     {"ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_FABLE_MODEL"},
				},
				OtherVars: []string{"ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"},
				Families:  []string{"claude-"},
			},
			ProxySettings: pointClaude,
		},
		Sbx:         Sbx{Kind: "claude", Service: "anthropic", Key: "ANTHROPIC_API_KEY", Keys: []string{"ANTHROPIC_API_KEY"}},
		Mail:        "noreply@anthropic.com",
		IsSessionID: UUID, // --resume also accepts a file
		Models:      true, Efforts: []string{"low", "medium", "high", "xhigh", "max"},
		Modes:        []string{"default", "acceptEdits", "plan", "auto", "dontAsk", "manual", "bypassPermissions"},
		ReadOnlyMode: "default",
		Owned: map[string]string{
			"-p": "", "--print": "", "--verbose": "", "--output-format": "", "--input-format": "",
			"-r": "", "--resume": "", "-c": "", "--continue": "", "--fork-session": "", "--session-id": "",
			"--model": "model", "--effort": "effort", "--permission-mode": "permission mode",
			"--dangerously-skip-permissions": "skip permissions", "--settings": "",
		},
	}
}

// pointClaude sets the base URL, and sets the placeholder in the variable that makes claude log in in the service's way. It
// disables requests to other hosts.
func pointClaude(s Service, url, placeholder string) (env, args []string) {
	return []string{
		"ANTHROPIC_BASE_URL=" + url, s.Env + "=" + placeholder,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	}, nil
}

// pinClaude keeps claude at the service that the environment names. A repository's .claude/settings.json overrides the
// environment, and the returned --settings override that file. They contain no credential, since others can see command lines.
func pinClaude(env []string) []string {
	for _, entry := range slices.Backward(env) {
		if url, ok := strings.CutPrefix(entry, "ANTHROPIC_BASE_URL="); ok && !strings.Contains(url, "@") {
			pinned := map[string]string{"ANTHROPIC_BASE_URL": url}
			for _, name := range (Claude{}).Describe().Login.UnsupportedVars {
				if !slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
					pinned[name] = ""
				}
			}
			text, err := json.Marshal(map[string]any{"env": pinned})
			if err != nil { // strings can always be encoded
				return nil
			}
			return []string{"--settings", string(text)}
		}
	}
	return nil
}

// claudeLogin reads the subscription login that claude stores in its home.
func claudeLogin(path string) (Token, error) {
	var file struct {
		Login struct {
			AccessToken string `json:"accessToken"`
			ExpiresAt   int64  `json:"expiresAt"` // milliseconds
		} `json:"claudeAiOauth"`
	}
	if err := ReadLogin(path, &file); err != nil {
		return Token{}, err
	}
	switch {
	case file.Login.AccessToken == "":
		return Token{}, fmt.Errorf("no login in %s", path)
	case file.Login.ExpiresAt != 0 && time.Now().UnixMilli() >= file.Login.ExpiresAt:
		return Token{}, errors.New("the login has expired; run claude once, or use a token of claude setup-token")
	}
	return Token{Secret: file.Login.AccessToken, Env: "CLAUDE_CODE_OAUTH_TOKEN"}, nil
}

// Invocation builds the command line; the prompt is on stdin.
func (c Claude) Invocation(r Request) (Invocation, error) {
	o := r.Options
	if err := r.Check(c); err != nil {
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
	for _, option := range [][2]string{{"--model", o.Model}, {"--effort", o.Effort}, {"--resume", r.Session}} {
		if option[1] != "" {
			argv = append(argv, option[:]...)
		}
	}
	argv = append(argv, pinClaude(o.Env)...)
	return Invocation{
		Argv:  append(argv, o.Args...),
		Stdin: strings.ToValidUTF8(r.Prompt, "\uFFFD"),
		Env:   r.Environ(env...),
	}, nil
}

// NewDecoder returns a decoder for one process.
func (Claude) NewDecoder() Decoder {
	return &claudeDecoder{Stream: Stream{Program: "claude", IsSessionID: UUID, Refusals: []string{
		"cannot be used with root/sudo privileges", "error: unknown option", "error: option '", "requires --verbose",
	}}}
}
