package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
)

var _ Endpointer = Codex{}

// codexProvider is the name of the model provider that Point makes.
const codexProvider = "ralph"

// codexKey is the variable in which codex finds the placeholder.
const codexKey = "OPENAI_API_KEY"

// Service finds the credential where codex would: CODEX_API_KEY, OPENAI_API_KEY, and the login in auth.json of
// CODEX_HOME (~/.codex), which is an API key or a ChatGPT subscription. The subscription's token lasts for days and is
// renewed by codex on the host, not here; ralph reads the file for each request. The service of a subscription is
// chatgpt.com, which also wants the account's id; that is no secret, and codex sends it itself. Providers of a
// user's own config.toml stay with the agent.
func (c Codex) Service(u User) (Service, error) {
	s := Service{
		Name: "openai", Upstream: cmp.Or(u.value("OPENAI_BASE_URL"), "https://api.openai.com/v1"),
		Header: "Authorization", Format: "Bearer %s",
		Routes:      []Route{{"POST", "/responses"}, {"POST", "/responses/compact"}, {"GET", "/models*"}},
		placeholder: codexKey,
	}
	if name, value := u.first("CODEX_API_KEY", "OPENAI_API_KEY"); name != "" {
		s.Login, s.Secret = name, held(value)
		return s, nil
	}
	s.Login = filepath.Join(cmp.Or(u.value("CODEX_HOME"), filepath.Join(u.Home, ".codex")), "auth.json")
	login, err := readCodexLogin(s.Login)
	if err != nil {
		return Service{}, flaw(c.Name(), "%v; %s", err, codexLogin)
	}
	s.Secret = func(context.Context) (string, error) {
		now, err := readCodexLogin(s.Login)
		if err == nil && (now.key != "") != (login.key != "") {
			err = errors.New("the login has become one of another kind; start again")
		}
		return cmp.Or(now.key, now.token), err
	}
	if login.key == "" {
		s.Upstream, s.account = "https://chatgpt.com/backend-api/codex", login.account
	}
	return s, nil
}

// codexLoginFile is what codex keeps of a login; either a key or a token.
type codexLoginFile struct{ key, token, account string }

func readCodexLogin(path string) (codexLoginFile, error) {
	var file struct {
		Key    string `json:"OPENAI_API_KEY"`
		Tokens struct {
			Access  string `json:"access_token"`
			Account string `json:"account_id"`
		} `json:"tokens"`
	}
	if err := readLogin(path, &file); err != nil {
		return codexLoginFile{}, err
	}
	l := codexLoginFile{key: file.Key}
	if l.key == "" {
		l.token, l.account = file.Tokens.Access, file.Tokens.Account
	}
	if l.key == "" && l.token == "" {
		return l, fmt.Errorf("no login in %s", path)
	}
	return l, nil
}

// Point makes a model provider of the endpoint, by arguments that win over every configuration file.
func (Codex) Point(s Service, url, placeholder string) (env, args []string) {
	headers := ""
	if s.account != "" {
		headers = `,http_headers={"chatgpt-account-id"=` + strconv.Quote(s.account) + `}`
	}
	provider := fmt.Sprintf(`model_providers.%s={name="OpenAI",base_url=%s,env_key="%s",wire_api="responses"%s}`,
		codexProvider, strconv.Quote(url), codexKey, headers)
	return []string{s.placeholder + "=" + placeholder}, []string{
		"-c", `model_provider="` + codexProvider + `"`,
		"-c", provider,
		"-c", "analytics.enabled=false",
		"-c", "check_for_update_on_startup=false",
		// These look at github.com and chatgpt.com for what a sandbox has no use for.
		"-c", "features.apps=false", "-c", "features.plugins=false", "-c", "features.remote_plugin=false",
	}
}
