package journal

import "time"

// Query selects records. Each field narrows the selection; the zero Query selects all records of the unnamed pool.
type Query struct {
	Pool   string // records of this namespace only; the empty name is a namespace, too
	Run    string
	Key    string
	Keys   []string // records of these keys only; empty: all
	Kind   Kind
	Open   bool      // runs that have not ended
	Latest bool      // the latest ended run of each key and kind
	Since  time.Time // runs that started at this time or later; zero: all
	Limit  int       // maximum number of records, the latest; 0: all
	Skip   int       // with Limit: number of latest records to skip first
}
