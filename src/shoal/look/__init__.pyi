from shoal.look.stylesheet import tokens as tokens
