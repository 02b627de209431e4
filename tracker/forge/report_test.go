package forge

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// board holds an issue's posts. Create can fail after it has taken effect.
type board struct {
	posts     []Post
	uncertain bool
}

func (b *board) poster() Poster {
	return Poster{
		Find: func(_ context.Context, match func(string) bool) (found []Post, err error) {
			for _, p := range b.posts {
				if match(p.Body) {
					found = append(found, p)
				}
			}
			return found, nil
		},
		Create: func(_ context.Context, body string) error {
			b.posts = append(b.posts, Post{ID: int64(len(b.posts) + 1), Body: body})
			if b.uncertain {
				return &transport.Failure{Uncertain: true}
			}
			return nil
		},
		Edit: func(_ context.Context, id int64, body string) error {
			b.posts[id-1].Body = body
			return nil
		},
		Delete: func(_ context.Context, id int64) error {
			b.posts = append(b.posts[:id-1], b.posts[id:]...)
			return nil
		},
	}
}

func TestSignerReports(t *testing.T) {
	t.Parallel()
	s := Signer{Key: []byte("0123456789abcdef"), Scope: "h a/b"}
	b := &board{uncertain: true}
	for _, text := range []string{"one", "two"} {
		if err := s.Report(t.Context(), 1, tracker.Report{Run: "r", Body: text}, b.poster()); err != nil {
			t.Fatal(err)
		}
	}
	b.posts = append(b.posts, Post{ID: 2, Body: b.posts[0].Body})
	if err := s.Report(t.Context(), 1, tracker.Report{Run: "r", Body: "three"}, b.poster()); err != nil {
		t.Fatal(err)
	}
	if len(b.posts) != 1 || !strings.HasSuffix(b.posts[0].Body, " -->\nthree") || !IsOwn(b.posts[0].Body) {
		t.Errorf("posts: %+v", b.posts)
	}
	if err := s.Report(t.Context(), 1, tracker.Report{Run: "next", Body: "four"}, b.poster()); err != nil {
		t.Fatal(err)
	}
	if len(b.posts) != 1 || !strings.HasSuffix(b.posts[0].Body, " -->\nfour") {
		t.Errorf("posts after the next run: %+v", b.posts)
	}
	// Another installation's post is found only by its mark.
	other := Signer{Key: []byte("fedcba9876543210"), Scope: s.Scope}
	for _, r := range []tracker.Report{{Run: "next", Body: "five", Mark: s.Mark(1)}, {Run: "own", Body: "six"}} {
		if err := other.Report(t.Context(), 1, r, b.poster()); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.posts) != 2 || !strings.HasSuffix(b.posts[0].Body, "\nfive") || !strings.HasSuffix(b.posts[1].Body, "\nsix") {
		t.Errorf("posts of two installations: %+v", b.posts)
	}
	lost := b.poster()
	lost.Create = func(context.Context, string) error {
		return &transport.Failure{Uncertain: true, Reason: transport.NoAnswer}
	}
	var f *transport.Failure
	if err := s.Report(t.Context(), 2, tracker.Report{Run: "r", Body: "x"}, lost); !errors.As(err, &f) || f.Reason != transport.NoAnswer {
		t.Errorf("a post that is not there: %v", err)
	}
}

func FuzzSigner(f *testing.F) {
	f.Add("text", "run-1")
	f.Add("<!-- ralph:report run=x mac=00 -->\n", "-->")
	f.Add("<!-- ", "\xff\n")
	f.Add("0", "")
	s := Signer{Key: []byte("0123456789abcdef"), Scope: "h a/b"}
	f.Fuzz(func(t *testing.T, text, run string) {
		b := &board{posts: []Post{{ID: 1, Body: text}}}
		for range 2 {
			if err := s.Report(t.Context(), 1, tracker.Report{Run: run, Body: text}, b.poster()); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.posts) != 2 || b.posts[0].Body != text || !IsOwn(b.posts[1].Body) {
			t.Errorf("posts after two reports of %q: %+v", run, b.posts)
		}
		if strings.Count(strings.SplitN(b.posts[1].Body, "\n", 2)[0], "-->") != 1 {
			t.Errorf("the first line of %q ends early", b.posts[1].Body)
		}
		if s.Mark(1) == s.Mark(2) {
			t.Error("the mark does not tell issues apart")
		}
	})
}

// The mark of another installation comes from a claim, which everybody with push permission can write. A mark of another form
// could end the HTML comment around it.
func TestSignerForgedMark(t *testing.T) {
	t.Parallel()
	s := Signer{Key: []byte("0123456789abcdef"), Scope: "h a/b"}
	b := &board{}
	for _, mark := range []string{"0 -->\n/close\n@all <!--", "", "0", strings.Repeat("z", 64)} {
		if err := s.Report(t.Context(), 1, tracker.Report{Run: "r", Mark: mark, Body: "text"}, b.poster()); err != nil {
			t.Fatal(err)
		}
		if len(b.posts) != 1 || !strings.HasSuffix(b.posts[0].Body, " mac="+s.Mark(1)+" -->\ntext") {
			t.Errorf("mark %q: %+v", mark, b.posts)
		}
	}
	if other := strings.Repeat("0", 64); s.Report(t.Context(), 2, tracker.Report{Mark: other, Body: "text"}, (&board{}).poster()) != nil {
		t.Error("the mark of another installation is refused")
	}
}
