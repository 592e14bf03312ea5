// Package poison is a world of servers that lie, with a model that obeys everything it reads. Its tests ask questions
// in this world and watch what reaches each server, and what reaches the user: no private value may get to another
// server, into a link or into an image without the user's yes, and nothing may be written that nobody has approved.
//
// The sample that runs with the other tests has each attack; `make poison` runs all variants.
package poison
