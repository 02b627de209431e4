// Package channels builds the notifier of a project from the configuration. Its channels are a program, a webhook, Slack and mail.
package channels

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/notify"
)

// New returns the notifier of a project; name may be empty. If outbox names a folder, unsent messages are stored there and sent
// later.
func New(a *compose.App, p *compose.Parts, name, outbox string) (*notify.Notifier, error) {
	var list []notify.Channel
	if len(p.NotifyCommand) > 0 {
		env := slices.DeleteFunc(slices.Clone(a.Host.Env), func(kv string) bool {
			variable, _, _ := strings.Cut(kv, "=")
			return slices.Contains(config.SecretVariables(), variable)
		})
		list = append(list, notify.Program{Argv: p.NotifyCommand, Dir: p.Top, Env: env})
	}
	client := &http.Client{}
	if p.NotifyURL != "" {
		key, err := signingKey(a, p)
		if err != nil {
			return nil, err
		}
		list = append(list, notify.Webhook{Address: p.NotifyURL, Key: key, Client: client})
	}
	if p.NotifySlackFile != "" {
		address, err := secretFile(a, p, "notify-slack-file", p.NotifySlackFile)
		if err != nil {
			return nil, err
		}
		if err := notify.CheckAddress(address); err != nil {
			return nil, p.Wrong("notify-slack-file", fmt.Errorf("the address in %s %w", p.NotifySlackFile, err))
		}
		list = append(list, notify.Slack{Address: address, Client: client})
	}
	if len(p.NotifyMailTo) > 0 {
		mail, err := mail(a, p)
		if err != nil {
			return nil, err
		}
		list = append(list, mail)
	}
	return notify.New(notify.Config{
		Channels:  list,
		On:        p.NotifyOn,
		Project:   name,
		Dashboard: p.DashboardURL,
		Outbox:    outbox,
		Log:       p.Log,
		Clean: func(text string) string {
			return screen.CleanLine(p.Secrets.Mask(text))
		},
	}), nil
}

// Outbox returns the folder of a project's unsent notifications.
func Outbox(p *compose.Parts) string { return filepath.Join(p.State, "outbox") }

// signingKey returns the key that signs notifications to notify-url, or nil if there is none.
func signingKey(a *compose.App, p *compose.Parts) ([]byte, error) {
	if p.NotifySecretFile == "" {
		return nil, nil
	}
	secret, err := secretFile(a, p, "notify-secret-file", p.NotifySecretFile)
	if err != nil {
		return nil, err
	}
	encoded, is := strings.CutPrefix(secret, "whsec_")
	if !is {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, p.Wrong("notify-secret-file", errors.New("the text after whsec_ is not base64"))
	}
	return key, nil
}

// secretFile reads a secret of at least MinToken characters.
func secretFile(a *compose.App, p *compose.Parts, key, path string) (string, error) {
	secret, err := a.ReadSecretFile(key, path)
	if err != nil {
		return "", p.Wrong(key, err)
	}
	if len(secret) < compose.MinToken {
		return "", p.Wrong(key, fmt.Errorf("%s has fewer than %d characters", path, compose.MinToken))
	}
	p.Secrets.Add(secret)
	return secret, nil
}

func mail(a *compose.App, p *compose.Parts) (notify.Mail, error) {
	m := notify.Mail{Server: p.NotifyMailServer, From: p.NotifyMailFrom, To: p.NotifyMailTo, User: p.NotifyMailUser}
	switch {
	case m.Server == "":
		return m, p.Wrong("notify-mail-to", errors.New("notify-mail-server is needed, such as mail.example.com:587"))
	case m.From == "":
		return m, p.Wrong("notify-mail-to", errors.New("notify-mail-from is needed: the sender's address"))
	case m.User == "":
		return m, nil
	case p.NotifyMailPasswordFile == "":
		return m, p.Wrong("notify-mail-user", errors.New("notify-mail-password-file is needed"))
	}
	var err error
	if m.Password, err = a.ReadSecretFile("notify-mail-password-file", p.NotifyMailPasswordFile); err != nil {
		return m, p.Wrong("notify-mail-password-file", err)
	}
	p.Secrets.Add(m.Password)
	return m, nil
}
