package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
)

// Config describes where claims are stored.
type Config struct {
	Git     git.Runner       // pinned to the repository; may talk to the remote
	Objects git.Store        // objects of the repository
	Remote  string           // name of the remote with the claims; empty: this repository
	Prefix  string           // prefix of the refs, such as "refs/ralph/claims/"
	Self    Process          // this process
	Left    string           // folder shared by all clones of this host; empty: none
	Now     func() time.Time // nil: this machine's clock; otherwise the uptime is adjusted to it, too
}

// Store reads and takes the claims of one repository.
type Store struct {
	refs    refs
	objects git.Store
	prefix  string
	remote  string // empty: this repository
	waitDir string // folder; see waiting.go

	// This process and the time; tests replace them.
	self   Process
	now    func() time.Time
	uptime func() time.Duration // uptime of the host, without sleep
	alive  func(pid int, started string) bool
}

// refs stores the claim refs, in a repository or on a remote.
type refs interface {
	// swap moves the key's ref from exactly old to new, and the other refs in the same transaction. "" means that there is
	// no ref. It fails with errRefChanged if the ref is not at old. After any other error the ref may or may not have moved.
	swap(ctx context.Context, key, old, new string, otherEdits ...git.Edit) error
	// push moves only another ref.
	push(ctx context.Context, move git.Edit) error
	// read returns the commit and the message of the key's ref; the commit is "" if there is no ref.
	read(ctx context.Context, key string) (commit, message string, err error)
	// list returns the messages of all claims by key.
	list(ctx context.Context) (map[string]string, error)
	// lastMoved returns the time at which the key's ref last moved; zero if unknown.
	lastMoved(key string) time.Time
}

// New opens the claims of a repository and records this boot of the machine. If that fails, claims of this boot have to
// expire after the next boot.
func New(c Config) *Store {
	s := &Store{
		objects: c.Objects,
		prefix:  c.Prefix,
		remote:  c.Remote,
		waitDir: c.Left,
		self:    c.Self,
		now:     time.Now,
		uptime:  uptime,
		alive:   proc.Alive,
	}
	if c.Now != nil {
		s.now, s.uptime = c.Now, func() time.Duration { return uptime() + time.Until(c.Now()) }
	}
	_ = s.recordBoot() // see the comment of New
	if c.Remote == "" {
		s.refs = localRefs{git: c.Git, prefix: c.Prefix}
	} else {
		s.refs = remoteRefs{
			git:          c.Git,
			objects:      c.Objects,
			prefix:       c.Prefix,
			remote:       c.Remote,
			maxFetch:     maxFetchBytes,
			fetchTimeout: git.RefsTime,
			notStored:    new(sync.Map),
		}
	}
	return s
}

// Claim takes the issue if nobody holds it, if its claim has expired, or if its holder is a process of this host that is
// gone. It fails with [*TakenError] or ErrVersion, or wraps git.ErrRemote. The claim expires after ttl unless Renew is
// called. Claim fills in the holder's Host, PID, Started, Generation and Expires. The caller has checked the key.
func (s *Store) Claim(ctx context.Context, key string, h Holder, ttl time.Duration) (*Claim, error) {
	if h.Owner == "" {
		return nil, fmt.Errorf("claim %s: the holder has no Owner", key)
	}
	if ttl <= 0 || ttl > MaxTTL {
		return nil, fmt.Errorf("claim %s: its TTL is %s; it must be more than 0 and at most %s", key, ttl, MaxTTL)
	}
	c := &Claim{store: s, key: key, ttl: ttl, opLock: make(chan struct{}, 1), sent: map[string]bool{}}
	h.Host, h.PID, h.Started, h.Generation = s.self.Host, s.self.PID, s.self.Started, 1
	commit, moveErr := "", error(nil) // stuck: why the ref could not move although nobody else has moved it
	previousHolder := Holder{}
	c.record.Mark = h.Mark
	for range maxTries {
		err := c.swapHolder(ctx, commit, h, c.Record())
		if err == nil {
			if c.TimeLeft() < ttl/2 { // others could see it expired and take it before the first renewal
				err = fmt.Errorf("claim %s: %w: the answer took more than half of the claim's TTL of %s", key, git.ErrUnavailable, ttl)
				return nil, errors.Join(err, c.giveBack(context.WithoutCancel(ctx), h, previousHolder))
			}
			if err := s.endWait(h.Run); err != nil {
				return nil, errors.Join(fmt.Errorf("claim %s: %w", key, err), c.Release(context.WithoutCancel(ctx)))
			}
			return c, nil
		}
		if !errors.Is(err, errRefChanged) {
			if ctx.Err() != nil {
				err = errors.Join(err, c.giveBack(context.WithoutCancel(ctx), h, previousHolder))
			}
			return nil, fmt.Errorf("claim %s: %w", key, err)
		}
		oldCommit := commit
		var current document
		refusal := err
		if commit, current, err = s.read(ctx, key); err != nil && commit != "" && s.isAbandoned(key, err) {
			current, err = document{}, nil
		}
		if moveErr = nil; commit == oldCommit {
			moveErr = refusal
		}
		if err != nil {
			return nil, fmt.Errorf("claim %s: %w", key, err)
		}
		if held := current.Holder; held != nil && !s.isSameClaim(*held, h) && !s.hasStopped(*held) {
			return nil, &TakenError{Key: key, Holder: *held}
		} else if held != nil && held.Host == s.self.Host && held.Run != h.Run {
			c.deadRun = held.Run
		}
		if previousHolder = (Holder{}); current.Holder != nil {
			previousHolder = *current.Holder
		}
		c.record, h.Generation = current.Record, current.Generation+1
		c.record.Mark = cmp.Or(c.record.Mark, h.Mark)
	}
	if moveErr != nil { // for example because of a lock of a killed git
		return nil, fmt.Errorf("claim %s: %s%s cannot be moved: %w", key, s.prefix, key, moveErr)
	}
	return nil, fmt.Errorf("claim %s: %w", key, &TakenError{Key: key, Holder: Holder{Owner: "several others at the same time"}})
}

// isSameClaim reports whether the holder is an earlier try of the same claim whose answer was lost, or a run that was left
// to be continued.
func (s *Store) isSameClaim(held, h Holder) bool {
	return held.Run == h.Run && (s.isWaiting(held) || held.Owner == h.Owner && s.self.isHolder(held))
}

// hasNoProcess reports whether no process holds the claim, so that its run waits to be continued.
func hasNoProcess(h Holder) bool { return h.PID == 0 }

// hasStopped reports whether the holder has certainly stopped working and has left no work that waits on this host.
func (s *Store) hasStopped(h Holder) bool {
	if !hasNoProcess(h) && s.isWaiting(h) {
		return false
	}
	if !hasNoProcess(h) && s.isOfThisMachine(h) {
		if !s.alive(h.PID, h.Started) {
			return true
		}
		if h.ExpiresUptime > 0 { // without it, only Expires can show that the holder hangs
			// Use the uptime: after a sleep of the machine, or after a change of its clock, the holder has had no time to
			// renew.
			return s.uptime() > h.ExpiresUptime || h.ExpiresUptime > s.uptime()+2*MaxTTL
		}
	}
	now := s.now()
	return now.After(h.Expires.Add(clockMargin)) || h.Expires.After(now.Add(2*MaxTTL)) // the second case: only a wrong clock can have written that
}

// read reads one claim. The document is zero if there is none.
func (s *Store) read(ctx context.Context, key string) (commit string, d document, err error) {
	commit, message, err := s.refs.read(ctx, key)
	if err != nil || commit == "" {
		return commit, document{}, err
	}
	if d, err = decode(message); err != nil {
		err = s.unreadableError(key, err)
	}
	return commit, d, err
}

// unreadableTTL is how long an unreadable claim counts as held. A living holder renews it before that.
const unreadableTTL = time.Hour

// isAbandoned reports whether an unreadable claim, for example one whose commit is gone, has not been renewed for
// unreadableTTL.
func (s *Store) isAbandoned(key string, err error) bool {
	at := s.refs.lastMoved(key)
	return !errors.Is(err, ErrVersion) && !at.IsZero() && s.now().After(at.Add(unreadableTTL))
}

func (s *Store) unreadableError(key string, err error) error {
	ref := s.prefix + key
	if errors.Is(err, ErrVersion) {
		return fmt.Errorf("%s: %w", ref, err)
	}
	remove := "git update-ref -d " + ref
	if s.remote != "" {
		remove = "git push " + s.remote + " :" + ref
	}
	return fmt.Errorf("%s cannot be read (%w); if no other ralph is at work, delete it with: %s", ref, err, remove)
}

// Drop removes an unreadable claim. It keeps one that a newer version wrote or that a remote has not sent. A holder that is
// at work loses the claim.
func (s *Store) Drop(ctx context.Context, key string) error {
	at, message, err := s.refs.read(ctx, key)
	if err != nil || at == "" {
		return err
	}
	_, err = decode(message)
	if err == nil || errors.Is(err, ErrVersion) {
		return err
	}
	if s.remote != "" && message == "" {
		return s.unreadableError(key, err)
	}
	return s.refs.swap(ctx, key, at, "")
}

// Forget removes a claim without a holder, and its record, unless steps are still pending. gone says whether it was
// removed.
func (s *Store) Forget(ctx context.Context, key string) (gone bool, err error) {
	at, message, err := s.refs.read(ctx, key)
	if err != nil || at == "" {
		return false, err
	}
	if state := s.state(key, message); !state.Gone || state.Holder.Run != "" || state.Record.Pending != nil {
		return false, nil
	}
	err = s.refs.swap(ctx, key, at, "")
	return err == nil, err
}

// write stores the document as a commit.
func (s *Store) write(d document) (string, error) {
	message, err := d.encode()
	if err != nil {
		return "", err
	}
	return s.objects.Message(message, s.now())
}

// State describes a claim as read from its ref.
type State struct {
	Holder Holder // zero if nobody holds the claim, or if Err is set
	// Deferred says that the holder's run waits on this host to be continued.
	Deferred bool
	// Gone says that nobody holds the claim, or that its holder has certainly stopped working.
	Gone bool
	// Broken says that the claim is Gone and unreadable.
	Broken   bool
	Record   Record
	Finished *Record // the record if nobody holds the claim and the issue is finished
	Err      error   // why the claim is unreadable; its issue may not be worked then
}

// List returns the state of all claims by key.
func (s *Store) List(ctx context.Context) (map[string]State, error) {
	messages, err := s.refs.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	states := map[string]State{}
	for key, message := range messages {
		if refname.CheckKey(key) != nil { // not one of ralph's refs
			continue
		}
		states[key] = s.state(key, message)
	}
	return states, nil
}

func (s *Store) state(key, message string) State {
	d, err := decode(message)
	switch {
	case err != nil && s.isAbandoned(key, err):
		return State{Gone: true, Broken: true}
	case err != nil:
		return State{Err: s.unreadableError(key, err)}
	case d.Holder != nil:
		return State{Holder: *d.Holder, Deferred: s.isWaiting(*d.Holder) && s.isOfThisMachine(*d.Holder), Gone: s.hasStopped(*d.Holder), Record: d.Record}
	case d.Record.Finished:
		return State{Gone: true, Record: d.Record, Finished: &d.Record}
	}
	return State{Gone: true, Record: d.Record}
}
