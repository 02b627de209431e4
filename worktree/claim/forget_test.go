package claim

import "testing"

func TestForget(t *testing.T) {
	everywhere(t, func(s *site) {
		forget := func(want bool) {
			s.Helper()
			if gone, err := s.store.Forget(s.Context(), "k"); gone != want || err != nil {
				s.Errorf("%v, %v", gone, err)
			}
		}
		forget(false) // there is no claim
		c := claimed(s, s.store, "r1")
		forget(false) // it is held
		pending := done("r1")
		pending.Pending = []byte(`{}`)
		if err := c.End(s.Context(), pending); err != nil {
			s.Fatal(err)
		}
		forget(false) // its report is not written yet
		if err := claimed(s, s.store, "r2").Finish(s.Context(), done("r2")); err != nil {
			s.Fatal(err)
		}
		forget(true)
		if states, err := s.store.List(s.Context()); err != nil || len(states) > 0 {
			s.Errorf("%v, %v", states, err)
		}
	})
}
