// placeholder until this layer's first file
