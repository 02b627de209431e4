package setup

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/trust"
)

const trustLong = `Show the settings in a repository's .ralph/config.yaml that need your consent, and accept them: those that
run something on this host, weaken the sandbox, open network or files, direct credentials, act in somebody's name, or differ
from your own file without being stricter. Until then, commands that work or change issues (work, run, serve, merge, new,
edit, close, reopen, retry), use a sandbox or build an image refuse to run; stop, clean, and commands that only look ignore
these settings, and say so. Flags, RALPH_* variables and your own file need no consent.

You accept exactly these values, for this checkout. Later changes are shown against what you accepted; other keys may change
freely. For CI, RALPH_TRUST=HASH accepts only the values with this hash (ralph trust --hash).`

// NewTrust returns `ralph trust`.
func NewTrust(a *compose.App) *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use: "trust", Short: "Accept what a repository's configuration does outside the sandbox", Long: trustLong,
		Example: "  ralph trust\n  ralph trust --yes\n  RALPH_TRUST=$(ralph trust --hash)\n  ralph trust --revoke",
		GroupID: compose.GroupSetUp, Args: exit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTrust(cmd, a, f) },
	}
	cmd.Flags().BoolVar(&f.yes, "yes", false, "accept without a question")
	cmd.Flags().BoolVar(&f.hash, "hash", false, "print only the hash of the values, and accept nothing")
	cmd.Flags().BoolVar(&f.revoke, "revoke", false, "withdraw your consent for this checkout")
	return cmd
}

type trustFlags struct{ yes, hash, revoke bool }

func runTrust(cmd *cobra.Command, a *compose.App, f trustFlags) error {
	if f.yes && f.hash || f.yes && f.revoke || f.hash && f.revoke {
		return exit.Usagef("--yes, --hash and --revoke exclude each other; choose one")
	}
	if err := a.CheckRepo(); err != nil {
		return err
	}
	top, err := a.Top(cmd.Context())
	if err != nil {
		return err
	}
	if f.revoke {
		return revokeTrust(a, top)
	}
	values, err := config.Guarded(a.Sources(nil, top))
	if err != nil {
		return err
	}
	file := screen.CleanLine(filepath.Join(top, config.File))
	if len(values) == 0 {
		a.UI.Note("nothing to accept: %s sets nothing that needs your consent", file)
		return nil
	}
	if f.hash {
		a.UI.Printf("%s\n", values.Hash())
		return nil
	}
	store, err := a.TrustStore()
	if err != nil {
		return err
	}
	before, err := store.Trusted(top)
	if err != nil {
		return err
	}
	if before.Hash() == values.Hash() {
		printGuarded(a, "Accepted values of "+file, before, values)
		return nil
	}
	title := file + " sets values that need your consent"
	if len(before) > 0 {
		title = file + " has changed since you accepted it"
	}
	printGuarded(a, title, before, values)
	if err := consent(a, cmd, f); err != nil {
		return err
	}
	if err := store.Trust(top, values); err != nil {
		return err
	}
	a.UI.Note("accepted; to withdraw: ralph trust --revoke")
	return nil
}

// consent asks the user, unless --yes was given.
func consent(a *compose.App, cmd *cobra.Command, f trustFlags) error {
	if f.yes {
		return nil
	}
	if !a.Host.Interactive {
		return exit.Usagef("no terminal to ask on; if you have read this and agree, accept it with: ralph trust --yes")
	}
	ctx := cmd.Context()
	yes, err := newAsker(ctx, a.UI, a.Host.Stdin).yes(ctx, "Do you accept this?", "it acts on this host, with your rights")
	if err != nil {
		return fmt.Errorf("%w; nothing was accepted", err)
	}
	if !yes {
		return errors.New("nothing was accepted")
	}
	return nil
}

func revokeTrust(a *compose.App, top string) error {
	store, err := a.TrustStore()
	if err != nil {
		return err
	}
	had, err := store.Forget(top)
	if err != nil {
		return err
	}
	said := "no values of %s were accepted"
	if had {
		said = "withdrawn: no values of %s are accepted any more"
	}
	a.UI.Note(said, screen.CleanLine(filepath.Join(top, config.File)))
	return nil
}

// printGuarded lists the values. If others were accepted before, it marks new (+) and removed (-) ones.
func printGuarded(a *compose.App, title string, before, values trust.Values) {
	changes, width := trust.Compare(before, values), 0
	for _, c := range changes {
		width = max(width, len(c.Key()))
	}
	a.UI.Printf("%s:\n", title)
	line := func(mark string, color screen.Style, v *trust.Value, more string) {
		text := fmt.Sprintf("%s %-*s  %s%s", mark, width, v.Key, v.Shown, more)
		text = screen.CleanLine(text)
		if mark != " " {
			text = a.UI.Paint(color, text)
		}
		a.UI.Printf("  %s\n", text)
	}
	for _, c := range changes {
		if c.Same() || len(before) == 0 {
			line(" ", screen.Dim, c.After, "")
			continue
		}
		more := ""
		if c.Before != nil && c.After != nil && c.Before.Shown == c.After.Shown {
			more = " (another value)" // the difference is hidden
		}
		if c.Before != nil {
			line("-", screen.Red, c.Before, "")
		}
		if c.After != nil {
			line("+", screen.Green, c.After, more)
		}
	}
	a.UI.Printf("Hash: %s\n", values.Hash())
}

// trustOwn accepts the configuration that was just written from the user's own choices.
func trustOwn(a *compose.App, top string) error {
	values, err := config.Guarded(a.Sources(nil, top))
	if err != nil || len(values) == 0 {
		return err
	}
	store, err := a.TrustStore()
	if err != nil {
		return err
	}
	return store.Trust(top, values)
}
