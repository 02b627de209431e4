package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/clean"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/identity"
	"github.com/ralph-pool/ralph/worktree/merge"
)

// journal checks the whole journal for damage, which other commands may not have met yet.
func (d *doctor) journal(ctx context.Context, p *compose.Parts) {
	if err := p.Journal.Check(ctx); err != nil {
		d.fail("journal", err.Error(), hint.For(err))
		return
	}
	d.ok("journal", p.JournalFile())
}

// disk checks the free space. It fails below the floor, where no run begins, and warns below twice the floor.
func (d *doctor) disk(p *compose.Parts) {
	d.room(p, "worktrees", p.State, "free some space, choose another disk with --state-dir, or lower --min-free-mb")
	if common := p.Repo.Git().Common(); !disk.Same(p.State, common) {
		d.room(p, "commits", common, "free some space, or lower --min-free-mb")
	}
}

func (d *doctor) room(p *compose.Parts, what, place, fix string) {
	room, err := disk.RoomAt(place)
	if err != nil {
		d.warn("disk", err.Error(), "")
		return
	}
	guard := disk.Guard{Place: place, Floor: compose.MinFree(p.Config)}
	twice := disk.Guard{Place: place, Floor: 2 * compose.MinFree(p.Config)}
	free := fmt.Sprintf("%s free for %s in %s", disk.Size(room.Bytes), what, place)
	text := fmt.Sprintf("%s; runs leave %d MiB free (min-free-mb)", free, p.MinFreeMB)
	switch {
	case guard.Short() != nil:
		d.fail("disk", guard.Short().Error(), fix)
	case twice.Short() != nil:
		d.warn("disk", text, fix)
	case p.MinFreeMB == 0:
		d.warn("disk", free+"; a run can fill the disk (min-free-mb is 0)", "--min-free-mb 1024")
	default:
		d.ok("disk", text)
	}
}

// leftovers reports what is left of dead runs, and how to remove it.
func (d *doctor) leftovers(ctx context.Context, p *compose.Parts) {
	found, err := clean.Leftovers(ctx, p)
	if d.lacksToken(ctx, p, err) || d.away && errors.Is(err, worktree.ErrRemote) {
		return
	}
	if err != nil {
		d.fail("leftovers", err.Error(), "")
		return
	}
	for _, l := range found {
		severity, fix := tracker.Fail, hint.Repair
		if l.Safe {
			severity = tracker.Warn
		}
		if l.Remove == nil {
			fix = ""
		}
		text := string(l.Kind) + ": " + l.Where
		if l.Detail != "" {
			text += " (" + l.Detail + ")"
		}
		d.add("leftovers", severity, text, fix)
	}
	locked := d.indexLock(ctx, p)
	dir := filepath.Join(p.State, "kept")
	kept, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.fail("leftovers", err.Error(), "")
		return
	}
	if len(kept) > 0 {
		d.add("leftovers", tracker.Warn, fmt.Sprintf("%s moved aside, with work that could not be imported: %s",
			screen.Plural(len(kept), "worktree"), dir), "check whether you need the files, then delete the folders")
	} else if len(found) == 0 && !locked {
		d.ok("leftovers", "none")
	}
}

// lockAge is the age from which a lock on the index of the user's checkout is likely to be from a git that was killed.
const lockAge = time.Minute

// indexLock reports an old lock on the index of the user's checkout, as a killed merge leaves it. Nobody can commit there meanwhile.
func (d *doctor) indexLock(ctx context.Context, p *compose.Parts) bool {
	at, err := worktree.Locate(ctx, p.Top)
	if err != nil {
		return false // other checks report it
	}
	lock := filepath.Join(at.GitDir, "index.lock")
	info, err := os.Lstat(lock)
	if err != nil || time.Since(info.ModTime()) < lockAge || merge.Owns(lock) { // the other leftovers have that of a dead ralph
		return false
	}
	d.warn("leftovers", fmt.Sprintf("lock on the index of your checkout, %s old: %s", screen.Age(time.Since(info.ModTime())), lock),
		"if no git and no editor is at work there: rm "+git.Quote(lock)+", then git status")
	return true
}

// identity checks that commits can be made with the configured identity.
func (d *doctor) identity(ctx context.Context, p *compose.Parts) {
	var environ []string
	if p.Sandbox == "none" {
		environ = os.Environ()
	}
	who, err := publish.Author(ctx, p.Identity(), p.Backlog)
	if err == nil {
		err = p.Repo.CheckIdentity(ctx, who, environ)
	}
	if err != nil {
		d.fail("identity", err.Error(), hint.Identity(err))
		return
	}
	if who.Author == (identity.Ident{}) {
		if who.Author, err = p.Repo.User(ctx); err != nil {
			d.warn("identity", fmt.Sprintf("%v; the author of commits is %s", err, who.Author), hint.Identity(err))
			return
		}
	}
	text := "the author of commits is " + who.Author.String()
	if who.Sign != "" {
		text += ", signed with " + string(who.Sign)
	}
	d.ok("identity", text)
}
