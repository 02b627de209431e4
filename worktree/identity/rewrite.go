package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/message"
)

// signTimeout limits one signature. A program that asks for a passphrase would wait forever.
const signTimeout = time.Minute

// Writer rewrites commits.
type Writer struct {
	Git        git.Runner
	Objects    git.Store
	Identity   Identity // with its committer filled in; see [Identity.For]
	Neutralize bool     // rewrite messages that would act on a forge
	Signed     bool     // commits that need no other change already have the user's signature
}

// Rewrite rewrites those commits that differ from the identity, and all commits after such a one. commits are ordered
// oldest first. It returns the new names by old name. A rewritten commit keeps no signature but the user's.
func (w Writer) Rewrite(ctx context.Context, commits []string) (renamed map[string]string, err error) {
	objects, err := w.Git.Objects(ctx, "commit", commits)
	if err != nil {
		return nil, fmt.Errorf("read commits: %w", err)
	}
	edit := message.Edit{Renamed: map[string]string{}, Neutralize: w.Neutralize, Trailers: w.Identity.trailers()}
	if w.Identity.Author != (Ident{}) {
		edit.Author = w.Identity.Author.String()
	}
	if w.Identity.Committer != (Ident{}) {
		edit.Committer = w.Identity.Committer.String()
	}
	for _, commit := range commits {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		object, ok := objects[commit]
		if !ok {
			return nil, fmt.Errorf("commit %s is missing", git.Short(commit))
		}
		next, name := edit.Apply(object), ""
		switch {
		case w.Identity.Sign != "" && (next != object || !w.Signed):
			name, err = w.sign(ctx, next)
		case next != object:
			name, err = w.Objects.Write("commit", []byte(next))
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		edit.Renamed[commit] = name
	}
	return edit.Renamed, nil
}

// sign makes git write the commit with the user's signature.
func (w Writer) sign(ctx context.Context, object string) (string, error) {
	header, text, _ := strings.Cut(object, "\n\n")
	args, env := []string{"commit-tree", "-S", "-F", "-"}, git.SigningEnv()
	encoding, roles := "UTF-8", []string{"author", "committer"}
	for n, line := range slices.Collect(strings.Lines(header)) {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		// Git reads these fields only in this order. Text that an agent has put elsewhere must not become an argument.
		switch {
		case field == "tree" && n == 0 && git.IsObject(value):
			args = append(args, value)
		case field == "parent" && n > 0 && len(roles) == 2 && git.IsObject(value):
			args = append(args, "-p", value)
		case field == "encoding" && len(roles) == 0:
			encoding = value
		case n > 0 && len(roles) > 0 && field == roles[0]:
			roles = roles[1:]
			name, rest, _ := strings.Cut(value, "<")
			email, date, _ := strings.Cut(rest, ">")
			if name = strings.TrimSpace(name); strings.Trim(name, ".,:;\\\"'") == "" { // git refuses such a name
				name = w.Identity.Committer.Name
			}
			if own := map[string]Ident{"author": w.Identity.Author, "committer": w.Identity.Committer}[field]; own != (Ident{}) {
				name, email = own.Name, own.Email
			}
			role := "GIT_" + strings.ToUpper(field)
			env = append(env, role+"_NAME="+name, role+"_EMAIL="+email, role+"_DATE=@"+strings.TrimSpace(date))
		}
	}
	format := map[Format]string{GPG: "openpgp", SSH: "ssh"}[w.Identity.Sign]
	env = append(env, git.HardenedEnv(git.Setting{
		Name:  "gpg.format",
		Value: format,
	}, git.Setting{Name: "i18n.commitEncoding", Value: encoding})...)
	commit, err := w.Git.With(env...).WithTimeout(signTimeout).Run(ctx, strings.ReplaceAll(text, "\x00", ""), args...)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSign, err)
	}
	return strings.TrimSpace(commit), nil
}

// ErrSign means that git cannot sign commits.
var ErrSign = errors.New("sign the commits")

// Try makes one test signature, in a folder that it deletes afterwards.
func (w Writer) Try(ctx context.Context, folder string) error {
	folder = filepath.Join(folder, "sign-"+rand.Text())
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	tree, err := git.Store{Dir: folder, SHA256: w.Objects.SHA256}.Write("tree", nil)
	if err == nil {
		w.Git = w.Git.With("GIT_OBJECT_DIRECTORY=" + folder)
		who := w.Identity.Committer.String() + " 1 +0000"
		_, err = w.sign(ctx, "tree "+tree+"\nauthor "+who+"\ncommitter "+who+"\n\ntest\n")
	}
	return errors.Join(err, os.RemoveAll(folder))
}
