package llmtest

// Embeddings reports whether a request asks for embeddings.
func Embeddings(r Request) bool { return r.Embeddings() }

// vectors returns the response to an embeddings request, last text first, so that clients must use the indexes.
func (r Reply) vectors(req Request) any {
	var data []object
	for i := len(req.Inputs) - 1; i >= 0; i-- {
		var v []float32
		if r.Embed != nil {
			v = r.Embed(req.Inputs[i])
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": v})
	}
	return object{"object": "list", "data": data, "model": req.Model,
		"usage": object{"prompt_tokens": 1, "total_tokens": 1}}
}
