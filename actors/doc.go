// Package actors is the small runtime that every actor of the engine uses.
package actors
