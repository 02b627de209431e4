package finish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/proof"
	"github.com/ralph-pool/ralph/worktree/git"
)

const verifyLong = `Check the proof of a commit that ralph has published: its signature, with the public keys of --key or
your own proof-key, and its statements against the repository and the backlog. Print what the proof says, and what it leaves
open. Exit status 0 means that no check failed. No code of the commits is run.`

// VerifyData is the output of `ralph verify --json`. Fields are only ever added.
type VerifyData struct {
	Commit    string          `json:"commit"`
	Proved    bool            `json:"proved"`
	Key       string          `json:"key,omitempty"`
	Checks    []proof.Result  `json:"checks"`
	Ignored   []string        `json:"ignored,omitempty"`
	Says      []string        `json:"says,omitempty"`
	Leaves    []string        `json:"leaves_open,omitempty"`
	Statement json.RawMessage `json:"statement,omitempty"`
}

// NewVerify returns `ralph verify`.
func NewVerify(a *compose.App) *cobra.Command {
	var publicKeys string
	cmd := &cobra.Command{
		Use: "verify BRANCH|COMMIT|KEY", Short: "Check the proof of what ralph has published", Long: verifyLong,
		Example:     "  ralph verify ralph/fix-login\n  ralph verify 1f3c9a2 --key ralph.pub --json\n  ralph verify 42",
		Annotations: compose.Marks(compose.Looks),
		GroupID:     compose.GroupLook, ValidArgsFunction: a.CompleteKeys,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Usagef("%s takes one branch, commit, KEY or number of a request", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runVerify(cmd, a, args[0], publicKeys) },
	}
	cmd.Flags().StringVar(&publicKeys, "key", "", "`file` with the public keys to trust (default: that of proof-key)")
	_ = cmd.MarkFlagFilename("key")
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForTracker, "branch-prefix", "proof-key")
	return cmd
}

func runVerify(cmd *cobra.Command, a *compose.App, typed, file string) (err error) {
	ctx := cmd.Context()
	p, err := a.OpenRepo(cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := p.UseRemote(ctx); err != nil {
		return err
	}
	untracked := error(nil)
	if p.Backlog, untracked = a.Tracker(ctx, p); untracked == nil {
		if err := a.Authorize(ctx, p); err != nil {
			return err
		}
	}
	keys, err := trusted(a, p, file)
	if err != nil {
		return err
	}
	v := verification{Parts: p, untracked: untracked}
	if err = v.find(ctx, typed); err != nil {
		return away(err)
	}
	data, err := v.check(ctx, keys)
	if err != nil {
		return away(err)
	}
	if a.JSON {
		err = a.UI.JSON(data)
	} else {
		showProof(a, data)
	}
	if !data.Proved {
		err = errors.Join(err, fmt.Errorf("%s is not proved", typed))
	}
	return err
}

// away gives the error of an unusable remote its exit status.
func away(err error) error {
	if exit.IsAway(err) {
		return &exit.Error{Status: exit.Parked, Err: err, Hint: hint.Remote}
	}
	return err
}

// trusted returns the public keys to trust.
func trusted(a *compose.App, p *compose.Parts, file string) ([]proof.PublicKey, error) {
	if file != "" {
		keys, err := proof.ReadPublicKeys(a.Expand(a.Host.Dir, file))
		if err != nil {
			return nil, exit.Usagef("--key: %w", err)
		}
		return keys, nil
	}
	if p.ProofKey == "" {
		return nil, exit.Usagef("no key to trust; give the public key of the person who ran ralph: --key FILE")
	}
	key, err := proof.ReadKey(p.ProofKey)
	if err != nil {
		return nil, p.Wrong("proof-key", err)
	}
	return []proof.PublicKey{key.Public()}, nil
}

// verification is the check of one commit.
type verification struct {
	*compose.Parts
	untracked error // why Backlog is nil
	commit    string
	named     bool // a branch named the commit
}

// find resolves what a person typed: a branch, an issue's branch, a request's head, or a commit. A name with refs/heads/ always
// means that branch, even if it looks like something else.
func (v *verification) find(ctx context.Context, typed string) error {
	branches := []string{typed}
	only, whole := strings.CutPrefix(typed, git.Heads)
	switch {
	case whole:
		branches = []string{only}
	case git.IsObject(typed): // people mean the commit, but a script may mean a branch with such a name
		places, err := v.places(ctx, typed)
		for _, at := range places {
			if at != typed && err == nil {
				err = exit.Usagef("%s is both a commit and a branch at another commit; for the branch write %s%[1]s",
					typed, git.Heads)
			}
		}
		if err != nil {
			return err
		}
		branches = nil
	case !strings.Contains(typed, "/") || strings.HasSuffix(typed, ".md"): // origin/ralph/one is not an issue
		branches = append(branches, v.BranchPrefix+compose.KeyOfFile(typed))
		if v.Backlog != nil {
			branches = append(branches, v.BranchPrefix+v.Key(ctx, typed))
		}
	}
	for _, branch := range slices.Compact(branches) {
		if !git.ValidRef(git.Heads + branch) {
			continue
		}
		places, err := v.places(ctx, branch)
		if err != nil {
			return err
		}
		// Prefer the remote's branch: this clone may have begun work that another clone finished.
		if at := cmp.Or(places[placeThere+v.Repo.Remote()], places[placeHere]); at != "" {
			v.commit, v.named = at, true
			return v.Repo.Notes().FetchCommit(ctx, at)
		}
	}
	if whole {
		return exit.Usagef("%s is not a branch here or on the remote", typed)
	}
	if number, err := strconv.ParseUint(strings.TrimLeft(typed, "#!"), 10, 31); err == nil && v.Repo.Remote() != "" {
		heads := []string{fmt.Sprintf("refs/pull/%d/head", number), fmt.Sprintf("refs/merge-requests/%d/head", number)}
		_, at, err := v.Repo.Notes().RemoteHead(ctx, heads...)
		if err != nil {
			return err
		}
		for _, head := range heads {
			if v.commit = at[head]; v.commit != "" {
				return v.Repo.Notes().FetchCommit(ctx, v.commit)
			}
		}
	}
	out, err := v.Repo.Git().Output(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", typed+"^{commit}")
	if git.Failed(err) {
		return exit.Usagef("%s is not a branch, commit, issue or request that this repository knows", typed)
	}
	v.commit = out
	return err
}

const (
	placeHere  = "the branch here"
	placeThere = "the branch on "
)

// places returns the tips of a branch here and on the remote, by place.
func (v *verification) places(ctx context.Context, branch string) (map[string]string, error) {
	places, ref := map[string]string{}, git.Heads+branch
	here, err := v.Repo.Git().Refs(ctx, ref)
	if err != nil {
		return nil, err
	}
	if at := here[ref]; at != "" {
		places[placeHere] = at
	}
	_, there, err := v.Repo.Notes().RemoteHead(ctx, ref)
	if at := there[ref]; at != "" {
		places[placeThere+v.Repo.Remote()] = at
	}
	return places, err
}

// check compares the commit's proof with repository and backlog.
func (v *verification) check(ctx context.Context, keys []proof.PublicKey) (VerifyData, error) {
	data := VerifyData{Commit: v.commit, Checks: []proof.Result{}}
	lines, err := v.lines(ctx)
	if err != nil {
		return data, err
	}
	found, ignored := proof.Find(ctx, v.commit, lines, keys)
	data.Ignored = ignored
	if found == nil {
		why := "the commit has no note; has the branch moved since?"
		if len(lines) > 0 {
			why = "no line of its note is valid"
		}
		data.Checks = append(data.Checks, proof.Result{
			State: proof.Fails,
			What:  fmt.Sprintf("there is a proof of %s by a trusted key", screen.ShortSHA(v.commit)),
			Why:   why,
		})
		return data, nil
	}
	facts, err := v.facts(ctx, found.Statement.Predicate)
	if err != nil {
		return data, err
	}
	data.Checks = proof.Judge(*found, facts)
	data.Proved, data.Key = proof.AllHold(data.Checks), found.Key
	data.Says, data.Leaves = found.Statement.Summary(), found.Statement.Limitations()
	data.Statement, err = json.Marshal(found.Statement)
	return data, err
}

// lines returns the lines of the commit's notes, here and on the remote.
func (v *verification) lines(ctx context.Context) ([]string, error) {
	notes := v.Repo.Notes()
	here, err := notes.LocalHead(ctx)
	if err != nil {
		return nil, err
	}
	there, _, err := notes.RemoteHead(ctx)
	if err != nil {
		return nil, err
	}
	lines, err := notes.Read(ctx, here, v.commit)
	if err != nil || there == here {
		return lines, err
	}
	more, err := notes.Read(ctx, there, v.commit)
	return append(lines, more...), err
}

func (v *verification) facts(ctx context.Context, p proof.Predicate) (f proof.Facts, err error) {
	g := v.Repo.Git()
	if f.Tree, err = g.Output(ctx, "rev-parse", "--verify", "--end-of-options", v.commit+"^{tree}"); err != nil {
		return f, err
	}
	if f.Base, err = g.ContainsIfPresent(ctx, v.commit, p.Base.Commit); err != nil {
		return f, err
	}
	f.Named = v.named
	if git.ValidRef(git.Heads + p.Branch) {
		if f.Branches, err = v.places(ctx, p.Branch); err != nil {
			return f, err
		}
	}
	f.Text, f.Unread = v.text(ctx, p.Issue.Key)
	return f, nil
}

// text returns the hash of an issue's title and body, or the reason why it cannot be read.
func (v *verification) text(ctx context.Context, key string) (hash, unread string) {
	if v.untracked != nil {
		return "", v.untracked.Error()
	}
	issue, err := v.Backlog.Get(ctx, key)
	if err != nil {
		return "", err.Error()
	}
	return issue.TextHash(), ""
}

// showProof prints the result for people.
func showProof(a *compose.App, d VerifyData) {
	line := func(lead, text string) {
		a.UI.Printf("%s\n", a.UI.Wrapped(lead+screen.CleanLine(text), 10))
	}
	how := a.UI.Paint(screen.Green, "proved")
	if !d.Proved {
		how = a.UI.Paint(screen.Red, "not proved")
	}
	a.UI.Printf("%s: commit %s\n", how, d.Commit)
	for _, c := range d.Checks {
		text := c.What
		if c.Why != "" {
			text += ": " + c.Why
		}
		colour := map[proof.State]screen.Style{proof.Holds: screen.Green, proof.Fails: screen.Red, proof.Unknown: screen.Yellow}[c.State]
		line("  "+a.UI.Paint(colour, fmt.Sprintf("%-8s", c.State)), text)
	}
	for _, why := range d.Ignored {
		line("  ignored ", "a line of the note: "+why)
	}
	if len(d.Says) > 0 {
		a.UI.Printf("\nThe owner of the key says:\n")
		for _, s := range d.Says {
			line("  ", s)
		}
		a.UI.Printf("\nThis does not prove:\n")
		for _, s := range d.Leaves {
			line("  ", s)
		}
	}
}
