// Package fleet works backlogs on several machines that share one PostgreSQL database.
//
// A row of River's queue is a hint that an issue may need work. It is for one try only. The right to work an issue comes
// from the claim in git alone, which fences every outward effect. So the database may be lost, restored or cut off at any
// time: rows are made again from the backlog, and if two machines work the same row, only one gets the claim.
//
// [OpenFrom] opens the database, and [Database.Migrate] prepares it. A [Fleet] is one process on one machine. [Fleet.Serve]
// plans and works a project until its context ends. To plan is to list the backlog, insert rows, and replace rows of dead
// processes; a lease selects one machine per project for it. To work is to take rows and slots and call the project's pool.
// All leases use database time. River elects one leader for everything; a lease per project spreads the planning.
package fleet
