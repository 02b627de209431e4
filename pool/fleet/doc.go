// Package fleet works backlogs on many machines that share one PostgreSQL database.
//
// A row of River's queue is a hint that an issue may need work. It is one generation, and is never tried again. The right to work an
// issue is the claim in git alone, and every effect outside is fenced by it. So the database may be lost, restored or cut
// off at any time: rows are made again from the backlog, and a row that two machines work is worked by one of them.
//
// [Open] opens the database, and [Database.Migrate] prepares it. A [Fleet] is one process on one machine. [Fleet.Serve] works
// a project until its context ends: it plans (one machine a project, by a lease: list the backlog, insert rows, replace rows
// of the dead) and works (take rows, take slots, call the project's pool). All leases live in database time. River elects one leader
// for everything; a lease for each project spreads the planning.
package fleet
