// Package breaks draws the points of a history at which a consumer disconnects and resumes.
//
//	seed, consumer, number ──New──▶ Points ──Due(progress)──▶ disconnect now?
package breaks
