package journal

import "time"

// Query selects records. Its fields narrow the selection; the zero Query selects everything of the unnamed pool.
type Query struct {
	Pool   string // the records of this namespace; the empty name is a namespace too
	Run    string
	Key    string
	Keys   []string // only the records of one of these keys; empty: of all
	Kind   Kind
	Open   bool      // only runs that have not ended
	Latest bool      // only the latest ended run of each key and kind
	Since  time.Time // only runs that started then or later; zero: all
	Limit  int       // of those, at most so many of the latest; 0: all
	Skip   int       // with Limit: leave out so many of the latest first
}
