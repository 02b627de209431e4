package sandbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// maxSecret is the maximum size in bytes of a secret on standard input.
const maxSecret = 64 << 10

const sandboxLoginLong = `Give sbx (Docker Sandboxes) the secret of a model service, for all its sandboxes on this machine.
SERVICE defaults to that of the agent. A secret that sbx already has is kept. The secret comes from a login in the browser
(--oauth), from standard input (--stdin), or from the agent's variable, such as ANTHROPIC_API_KEY. The proxy of sbx puts it
into requests; no sandbox sees it. Other sandboxes use your own logins and keys, and need no login.`

type loginFlags struct{ oauth, stdin, refresh bool }

func newSandboxLoginCommand(a *compose.App) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use: "login [SERVICE]", Short: "Give sbx the secret of a service, or log in to it", Long: sandboxLoginLong,
		Example: "  ralph sandbox login --oauth openai\n  pass show anthropic | ralph sandbox login --stdin anthropic",
		Args:    exit.AtMostOne("service"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runSandboxLogin(cmd, a, f, args) },
	}
	cmd.Flags().BoolVar(&f.oauth, "oauth", false, "log in through the browser, for services with such a login")
	cmd.Flags().BoolVar(&f.stdin, "stdin", false, "read the secret from standard input")
	cmd.Flags().BoolVar(&f.refresh, "refresh", false, "replace a secret that sbx has")
	cmd.MarkFlagsMutuallyExclusive("oauth", "stdin")
	a.Bind(cmd, 0, "agent", "agent-command")
	return cmd
}

func runSandboxLogin(cmd *cobra.Command, a *compose.App, f loginFlags, args []string) error {
	loaded, err := a.Config(cmd)
	if err != nil {
		return err
	}
	service := a.About(loaded.Config.Agent).Sbx.Service
	switch {
	case len(args) == 1:
		service = args[0]
	case service == "":
		return exit.Usagef("agent %q has no service that sbx knows; name one, such as: ralph sandbox login openai", loaded.Config.Agent)
	}
	need := sbx.Need{Service: service, OAuth: f.oauth, Refresh: f.refresh}
	for _, agent := range a.Agents().All() {
		if s := agent.Describe().Sbx; s.Service == service {
			need.Env = s.Key
		}
	}
	if f.stdin {
		if need.Secret, err = readSecret(cmd.Context(), a); err != nil {
			return err
		}
	}
	p := sbx.New(sbx.Config{HostEnv: a.Host.Env})
	if err := p.Ensure(cmd.Context(), need, a.UI.Err); err != nil {
		return err
	}
	a.UI.Printf("sbx has the secret of %s\n", screen.CleanLine(service))
	return nil
}

// readSecret reads a secret of one line.
func readSecret(ctx context.Context, a *compose.App) (string, error) {
	text, err := a.ReadInput(ctx, maxSecret+1)
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("read the secret from standard input: %w", err)
	case secret == "":
		return "", exit.Usagef("no secret on standard input; pipe it in, or remove --stdin")
	case len(text) > maxSecret || strings.ContainsAny(secret, "\r\n\x00"):
		return "", exit.Usagef("standard input is not a secret: it has more than one line, or more than %d bytes", maxSecret)
	}
	return secret, nil
}
